/** The records of several prompts' generations as they come. */
import type { AnswerPage } from "../generation/records.js";

type Pages = AsyncGenerator<AnswerPage, void>;

export function mergePages(sources: readonly Pages[]): Pages {
  const [only, ...others] = sources;
  // Nearly every answer: a race would cost as much as all else that is done for a record.
  return only !== undefined && others.length === 0 ? only : race(sources);
}

/** Each next page is asked for when the one before it was taken, so a slow reader holds one of each. */
async function* race(sources: readonly Pages[]): Pages {
  const waiting = new Map(sources.map((source) => [source, taken(source)]));
  try {
    while (waiting.size > 0) {
      const { source, result } = await Promise.race(waiting.values());
      if (result.done === true) waiting.delete(source);
      else {
        yield result.value;
        waiting.set(source, taken(source));
      }
    }
  } finally {
    // Not awaited: one that waits for its next record ends when that comes, or when its own signal aborts.
    for (const source of sources) source.return().catch(() => undefined);
  }
}

async function taken(source: Pages) {
  return { source, result: await source.next() };
}
