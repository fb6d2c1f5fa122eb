/**
 * Every output of a sequence is the fold of the inputs that took effect so far. A lost, doubled,
 * swapped or foreign step changes all later outputs. So the check reports only the first wrong
 * output, which shows the fault.
 */
import type { RequestHistory } from "./history.js";
import { referenceOf, type Reference, type State } from "./references.js";

export interface WrongFold {
  readonly request: string;
  readonly step: number;
  readonly expected: string;
  readonly actual: string;
  readonly looksLike: string;
}

interface Effect {
  readonly request: string;
  readonly step: number;
  readonly burst: number;
  readonly start: boolean;
  readonly input: bigint;
  readonly output: bigint;
  readonly version: string | undefined;
}

/**
 * @param steps all requests of a sequence, in step order; a request without a result had no effect
 * @returns the first wrong output; undefined if all outputs are right
 */
export function checkFold(steps: readonly RequestHistory[]): WrongFold | undefined {
  const reference = referenceOf(steps[0]?.ask.model);
  let state: State | null = null;
  let inputs: bigint[] = [];
  for (const burst of bursts(steps.flatMap(effectOf))) {
    const open = [...burst];
    while (open.length > 0) {
      if (open[0]?.start === true) [state, inputs] = [null, []];
      const before: State | null = state;
      const next = open.findIndex((effect) => outputOf(reference, before, effect) === effect.output);
      const first = open[Math.max(next, 0)];
      if (first === undefined) break;
      if (next < 0) return wrong(reference, first, before, inputs);
      open.splice(next, 1);
      state = reference.step(before, first.input);
      inputs.push(first.input);
    }
  }
  return undefined;
}

function outputOf(reference: Reference, before: State | null, { input, version }: Effect): bigint {
  return reference.output(reference.step(before, input), version);
}

function effectOf({ ask, outcomes }: RequestHistory): Effect[] {
  const result = outcomes.find((outcome) => outcome.kind === "ok");
  if (result?.kind !== "ok" || ask.input === undefined || !/^-?\d+$/.test(result.output)) return [];
  const { request, step = 0, numbered, start = false, input } = ask;
  const burst = numbered === true ? step : (ask.burst ?? step);
  return [{ request, step, burst, start, input, output: BigInt(result.output), version: result.version }];
}

function bursts(effects: readonly Effect[]): Effect[][] {
  const groups: Effect[][] = [];
  for (const effect of effects) {
    const last = groups.at(-1);
    if (last?.[0]?.burst === effect.burst) last.push(effect);
    else groups.push([effect]);
  }
  return groups;
}

function wrong(reference: Reference, effect: Effect, state: State | null, inputs: readonly bigint[]): WrongFold {
  const { request, step, input, output } = effect;
  return {
    request,
    step,
    expected: String(outputOf(reference, state, effect)),
    actual: String(output),
    looksLike: diagnose(reference, [...inputs, input], effect),
  };
}

/** Says which single slip explains the output. `inputs` ends with the input of the wrong step. */
function diagnose(reference: Reference, inputs: readonly bigint[], { output, version }: Effect): string {
  const explains = (list: readonly bigint[]) => {
    const state = list.reduce<State | null>((before, input) => reference.step(before, input), null);
    return state !== null && reference.output(state, version) === output;
  };
  const last = inputs.length - 1;
  if (explains(inputs.slice(last))) return "state lost: began from the initial state";
  for (let i = last; i >= 0; i--) {
    const [before, one, after] = [inputs.slice(0, i), inputs.slice(i, i + 1), inputs.slice(i + 1)];
    const ago = last - i === 0 ? "this step" : `the step ${last - i} before`;
    if (explains([...before, ...after])) return `lost ${ago}`;
    if (explains([...before, ...one, ...one, ...after])) return `doubled ${ago}`;
    if (explains([...before, ...after.slice(0, 1), ...one, ...after.slice(1)]))
      return `swapped ${ago} with its successor`;
    if (i > 0 && explains(inputs.slice(i))) return `state lost before ${ago}`;
  }
  return "no single lost, doubled or swapped step explains it";
}
