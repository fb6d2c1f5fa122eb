/** Lists the sequences of a model. */
import type { Sequence, Sequences } from "../../gateway/answers.js";
import { read } from "./ask.js";
import { compareIds, sequencesPath } from "./sequence-id.js";

export interface SequenceList {
  readonly sequences: readonly Sequence[];
  /** How many the model has; undefined if the gateway does not say. */
  readonly total: number | undefined;
  /** Whether there are sequences beyond the list's end. */
  readonly hasMore: boolean;
}

/** The most that a gateway gives at once. */
const PAGE = 1_000;
/** The most that the console lists; a search finds the others. */
export const MOST_LISTED = 10_000;

/**
 * Reads all pages of the list, up to the most that the console lists.
 * @param prefix the beginning of the ids; empty for all sequences
 */
export async function listSequences(model: string, prefix: string, signal: AbortSignal): Promise<SequenceList> {
  const found = new Map<string, Sequence>();
  let after: string | undefined;
  let total: number | undefined;
  do {
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(prefix !== "" && { prefix }),
      ...(after !== undefined && { after }),
    });
    const page = await read<Sequences>(`${sequencesPath(model)}?${query.toString()}`, { signal });
    // A sequence may be on several pages.
    for (const one of page.sequences) found.set(`${typeof one.sequence_id} ${one.sequence_id}`, one);
    after = page.next;
    // Only the first page says it.
    total ??= page.total;
  } while (after !== undefined && found.size < MOST_LISTED);
  const sequences = [...found.values()].toSorted((a, b) => compareIds(a.sequence_id, b.sequence_id));
  return { sequences, total, hasMore: after !== undefined };
}
