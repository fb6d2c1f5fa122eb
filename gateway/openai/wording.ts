/** How one of OpenAI's paths puts an answer: all else about answering is the same for both. */
import type { TokenRecord } from "#shared/contract/generation.js";
import type { WholeChoice } from "../generation/fold.js";

export interface Wording {
  readonly idPrefix: string;
  /** `object` of a whole answer, and of a chunk. */
  readonly whole: string;
  readonly chunk: string;
  /** @param index counted on over all prompts */
  wholeChoice(choice: WholeChoice, index: number, prompt: number): object;
  /** What one record of one prompt adds, a chunk for each; none where nothing can be told yet. Keeps count of what it was given. */
  chunkChoices(record: TokenRecord, prompt: number): object[];
  /**
   * The same in JSON for a record that says one text of the only choice and nothing else.
   * @param text as JSON
   * @returns "" where nothing can be told yet; undefined where it takes more than the text: ask `chunkChoices`
   */
  plainChoice(text: string, prompt: number): string | undefined;
}
