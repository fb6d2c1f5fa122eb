/**
 * Every output of a chain sequence is the fold of the inputs that took effect so far. A lost,
 * doubled, swapped or foreign step changes all later outputs. So the check reports only the first
 * wrong output, which shows the fault.
 */
import { chainState, chainStep } from "../../fixtures/models/chain-reference.js";
import type { RequestHistory } from "./history.js";

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
  /** The state after the step, from its output. */
  readonly output: bigint;
}

/**
 * @param steps all requests of a sequence, in step order; a request without a result had no effect
 * @returns the first wrong output; undefined if all outputs are right
 */
export function checkFold(steps: readonly RequestHistory[]): WrongFold | undefined {
  let state: bigint | null = null;
  let inputs: bigint[] = [];
  for (const burst of bursts(steps.flatMap(effectOf))) {
    const open = [...burst];
    while (open.length > 0) {
      if (open[0]?.start === true) [state, inputs] = [null, []];
      const before: bigint | null = state;
      const next = open.findIndex(({ input, output }) => chainStep(before, input) === output);
      const first = open[Math.max(next, 0)];
      if (first === undefined) break;
      if (next < 0) return wrong(first, before, inputs);
      open.splice(next, 1);
      state = first.output;
      inputs.push(first.input);
    }
  }
  return undefined;
}

function effectOf({ ask, outcomes }: RequestHistory): Effect[] {
  const result = outcomes.find((outcome) => outcome.kind === "ok");
  if (result?.kind !== "ok" || ask.input === undefined || !/^-?\d+$/.test(result.output)) return [];
  const { request, step = 0, burst = step, start = false, input } = ask;
  return [{ request, step, burst, start, input, output: chainState(BigInt(result.output), result.version) }];
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

function wrong({ request, step, input, output }: Effect, state: bigint | null, inputs: readonly bigint[]): WrongFold {
  return {
    request,
    step,
    expected: String(chainStep(state, input)),
    actual: String(output),
    looksLike: diagnose([...inputs, input], output),
  };
}

/** Says which single slip explains the output. `inputs` ends with the input of the wrong step. */
function diagnose(inputs: readonly bigint[], output: bigint): string {
  const fold = (list: readonly bigint[]) => list.reduce<bigint | null>((state, input) => chainStep(state, input), null);
  const last = inputs.length - 1;
  if (fold(inputs.slice(last)) === output) return "state lost: began from the initial state";
  for (let i = last; i >= 0; i--) {
    const [before, one, after] = [inputs.slice(0, i), inputs.slice(i, i + 1), inputs.slice(i + 1)];
    const ago = last - i === 0 ? "this step" : `the step ${last - i} before`;
    if (fold([...before, ...after]) === output) return `lost ${ago}`;
    if (fold([...before, ...one, ...one, ...after]) === output) return `doubled ${ago}`;
    if (fold([...before, ...after.slice(0, 1), ...one, ...after.slice(1)]) === output)
      return `swapped ${ago} with its successor`;
    if (i > 0 && fold(inputs.slice(i)) === output) return `state lost before ${ago}`;
  }
  return "no single lost, doubled or swapped step explains it";
}
