/** The records of several prompts' generations as they come. */
import type { TokenRecord } from "#shared/contract/generation.js";

export interface PromptRecord {
  readonly prompt: number;
  readonly record: TokenRecord;
}

/** Each next record is asked for when the one before it was taken, so a slow reader holds one of each. The sources' own signal ends what is left of them. */
export async function* mergeRecords(
  sources: readonly AsyncIterator<TokenRecord, void>[],
): AsyncGenerator<PromptRecord, void> {
  const waiting = new Map(sources.map((source, prompt) => [prompt, taken(source, prompt)]));
  while (waiting.size > 0) {
    const { source, prompt, result } = await Promise.race(waiting.values());
    if (result.done === true) waiting.delete(prompt);
    else {
      yield { prompt, record: result.value };
      waiting.set(prompt, taken(source, prompt));
    }
  }
}

async function taken(source: AsyncIterator<TokenRecord, void>, prompt: number) {
  return { source, prompt, result: await source.next() };
}
