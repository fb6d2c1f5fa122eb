/** The view of a sequence, from the answer of view.lua. */
import { checkpoint, sequenceView } from "../../records/sequence.js";
import { parsePin, type Pin } from "../address.js";
import { parseFacts, type SequenceFacts } from "../pieces/sequence.js";

/** `busy`: a step is in the queue or runs. `hibernating`: the state waits on disk. */
export const sequenceStates = ["live", "busy", "hibernating"] as const;
export type SequenceState = (typeof sequenceStates)[number];

export interface SequenceView {
  /** `tenant:id`, from `sequenceName`. */
  readonly name: string;
  /** Number of its last step that has ended, counted from its START; 0 if no step has ended. */
  readonly step: number;
  readonly state: SequenceState;
  /** Its steps that have been admitted and wait behind another of its steps. */
  readonly waiting: number;
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
  const { name, facts, stateBytes, state: said } = sequenceView.read(reply);
  const known = parseFacts(facts);
  const state = sequenceStates.find((one) => one === said) ?? "live";
  const isBusy = state === "busy";
  return {
    name,
    step: Math.max(0, known.done - known.start + 1),
    state,
    waiting: Math.max(0, known.next - known.done - (isBusy ? 1 : 0)),
    pin: parsePin(known.pin),
    lapses: isBusy ? undefined : known.lapses,
    version: known.at === "" || known.at === "!" ? undefined : known.at,
    stateBytes,
    checkpoints: stepsKept(known),
  };
}

function stepsKept({ kept, start, done, at }: SequenceFacts): number[] {
  const numbers = kept.length > 0 ? kept.flatMap((item) => checkpoint.read(item)?.step ?? []) : at === "" ? [] : [done];
  return numbers.map((number) => number - start + 1).filter((number) => number >= 1);
}
