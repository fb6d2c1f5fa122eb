/**
 * The bare loop of each model that a load has sequences of: the state after each step, and the
 * output that shows it.
 */
import { chainOutput, chainStep } from "../../fixtures/models/chain-reference.js";

/** The states of the model's steps, one behind the other. */
export type State = readonly bigint[];

export interface Reference {
  /** @param state null before the first step */
  readonly step: (state: State | null, input: bigint) => State;
  readonly output: (state: State, version: string | undefined) => bigint;
}

/** So many chains, each of which takes the output of the chain before it as its input. */
export function chainsInARow(count: number): Reference {
  return {
    step(state, input) {
      const states: bigint[] = [];
      for (let i = 0; i < count; i++) states.push(chainStep(state?.[i] ?? null, states.at(-1) ?? input));
      return states;
    },
    output: (state, version) => chainOutput(state.at(-1) ?? 0n, version),
  };
}

const chain = chainsInARow(1);

/** Models that are no single chain. */
const others: Readonly<Record<string, Reference>> = { "chain-twice": chainsInARow(2) };

export function referenceOf(model: string | undefined): Reference {
  return (model === undefined ? undefined : others[model]) ?? chain;
}
