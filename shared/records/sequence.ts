/** The records of sequences. */
import { like, list, number, record, text, words } from "./record.js";

/**
 * The facts of a sequence: a field of the hash `seqs:{b}:m`, by the name of the sequence.
 */
export const sequence = record("|", {
  /** Number of the last admitted step; the numbers run over all STARTs. */
  next: number(),
  /** Number of the last step that has ended. */
  done: number(),
  /** Number of the last START. */
  start: number(1),
  /**
   * `0` while the sequence takes steps; else why only a START is possible: `1` the last step has
   * END, `2` a client deleted the sequence, `3` a step failed (past.lua).
   */
  ended: like("[0-3]", "0"),
  /**
   * Version of the checkpoint from which the next step continues (version.lua); "" for none, "!"
   * after a failure.
   */
  at: text(),
  /** The pin of the last START, as `pinText` writes it. */
  pin: text(),
  /**
   * The sequence's entry in a ready stream, `@` for a parked step, "" while the sequence is idle.
   */
  entry: text(),
  /** The pin of that entry's lane. */
  on: text(),
  /** Name of that entry's request. */
  request: text(),
  /** Redis ms at which the sequence expires idle; 0 before the first idle time. */
  lapses: number(),
  /** Redis ms until which the checkpoints live at least. */
  keptUntil: number(),
  /** The checkpoints of a model that keeps several, oldest first, each a `checkpoint`. */
  kept: words(),
});

/** A checkpoint among the checkpoints of a model that keeps several. */
export const checkpoint = record("=", {
  /** Number of the step that made the checkpoint. */
  step: number(),
  /** Version of the checkpoint. */
  version: text(),
});

/** How a sequence stands (sequences/view.lua). */
export const sequenceView = list({
  /** `tenant:id`, from `sequenceName`. */
  name: text(),
  /** A `sequence`. */
  facts: text(),
  /** Bytes of the tensors of its state. */
  stateBytes: number(),
  /** A `SequenceState` (sequences/view.ts). */
  state: text(),
});
