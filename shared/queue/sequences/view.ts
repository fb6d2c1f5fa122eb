/** The view of a sequence, from the answer of view.lua. */
import { checkpoint, sequenceView } from "../../records/sequence.js";
import { parsePin, type Pin } from "../address.js";
import { parseFacts, type SequenceFacts } from "../pieces/sequence.js";

export interface SequenceView {
  /** `tenant:id`, from `sequenceName`. */
  readonly name: string;
  /** Number of its last step that has ended, counted from its START; 0 if no step has ended. */
  readonly step: number;
  readonly pin: Pin;
  /** Redis ms at which the sequence expires; undefined while a step is in the queue or runs. */
  readonly lapses: number | undefined;
  /**
   * The version of the checkpoint from which the sequence continues; undefined for its initial
   * state.
   */
  readonly version: string | undefined;
  readonly stateBytes: number;
  /** The steps whose checkpoints Redis still has, counted from its START, oldest first. */
  readonly checkpoints: readonly number[];
}

/** @param reply the result of `viewOf` in view.lua */
export function viewOf(reply: unknown): SequenceView {
  const { name, facts, stateBytes } = sequenceView.read(reply);
  const known = parseFacts(facts);
  return {
    name,
    step: Math.max(0, known.done - known.start + 1),
    pin: parsePin(known.pin),
    lapses: known.entry === "" ? known.lapses : undefined,
    version: known.at === "" || known.at === "!" ? undefined : known.at,
    stateBytes,
    checkpoints: stepsKept(known),
  };
}

function stepsKept({ kept, start, done, at }: SequenceFacts): number[] {
  const numbers = kept.length > 0 ? kept.flatMap((item) => checkpoint.read(item)?.step ?? []) : at === "" ? [] : [done];
  return numbers.map((number) => number - start + 1).filter((number) => number >= 1);
}
