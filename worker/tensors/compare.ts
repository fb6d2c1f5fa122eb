/**
 * Runs made-up requests on the GPU and on the CPU before a GPU's model serves clients, and compares
 * the answers. So a driver that computes wrongly shows before any client gets an answer, and the
 * first client does not wait for the compilation of kernels.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import { decodeFrame, type Tensor } from "#shared/frame.js";
import type { Settled } from "../lane/settle.js";
import { tensorDisagreement } from "../onnx/agreement.js";
import { withoutPaths } from "../onnx/error-text.js";
import type { TensorOptions } from "./protocol.js";
import { onCpu } from "../onnx/providers.js";
import { LoadError } from "../thread/load-error.js";
import { startModel, type ModelHost } from "./host.js";
import { errorOf, madeUp, runMadeUp } from "./made-up.js";
import type { ServingModel } from "./serving.js";

/** Steps of each made-up sequence. The second step is the first that continues a state. */
const STEPS = 3;
/** Made-up requests of a batch. */
const REQUESTS = 2;
/** Sizes for variable dimensions, in the order of the tries, until the CPU can run one. */
const SIZES = [1, 2, 16, 512];

/**
 * @param model the model as it will serve
 * @param options the options of the model's session
 * @param tolerance see `tensorDisagreement`
 * @param onFatal runs when the thread of the model on the CPU hangs or dies
 * @returns a warning if the CPU cannot run the model
 * @throws LoadError if a GPU cannot run requests that the CPU can, or gives other answers
 */
export async function compareWithCpu(
  model: ServingModel,
  served: ServedModel,
  options: TensorOptions,
  tolerance: number | undefined,
  onFatal: (reason: string) => void,
): Promise<string[]> {
  if (options.placement.gpu === undefined) return [];
  let cpu: ModelHost;
  try {
    cpu = await startModel({ ...options, placement: onCpu }, onFatal);
  } catch (error) {
    // The CPU lacks some of a GPU's operators.
    const reason = withoutPaths(error instanceof Error ? error.message : String(error));
    return [`its answers were not compared with the CPU's, which cannot open the model: ${reason}`];
  }
  try {
    let reason = "";
    for (const size of SIZES) {
      const fault = await compare(model, { ...model, host: cpu }, served, size, tolerance);
      if (fault === undefined) return [];
      reason = fault;
      if (served.inputs.every(({ dims }) => !dims.includes(-1))) break;
    }
    return [`its answers were not compared with the CPU's, which cannot run made-up inputs: ${reason}`];
  } finally {
    await cpu.close();
  }
}

/** @returns why the CPU cannot run the made-up requests; undefined if both agree */
async function compare(
  model: ServingModel,
  expecting: ServingModel,
  served: ServedModel,
  size: number,
  tolerance: number | undefined,
): Promise<string | undefined> {
  const count = served.maxBatchSize > 1 && model.limits.maxBatchSize > 1 ? REQUESTS : 1;
  let states: (readonly Tensor[] | undefined)[] = Array.from({ length: count }, () => undefined);
  for (let step = 1; step <= STEPS; step++) {
    const batch = states.map((tensors, i) => madeUp(served, { sequence: i, step, last: STEPS, size }, tensors));
    const expected = await runMadeUp(expecting, batch);
    const fault = expected.map(errorOf).find((error) => error !== undefined);
    if (fault !== undefined) return fault;
    const found = await runMadeUp(model, batch);
    for (const [i, one] of found.entries()) checkAgreement(one, expected[i], tolerance);
    states = expected.map(({ checkpoint }) => checkpoint?.tensors);
  }
  return undefined;
}

/** @throws LoadError if the GPU's answer or state is not the CPU's */
function checkAgreement(found: Settled, expected: Settled | undefined, tolerance: number | undefined): void {
  const error = errorOf(found);
  if (error !== undefined) throw new LoadError(`it cannot be run there: ${error}`);
  const [ours, theirs] = [tensorsOf(found), expected === undefined ? [] : tensorsOf(expected)];
  for (const [i, tensor] of theirs.entries()) {
    const one = ours[i];
    const fault = one === undefined ? `'${tensor.name}' is missing` : tensorDisagreement(one, tensor, tolerance);
    if (fault !== undefined) throw new LoadError(`its answers there are not those of the CPU: ${fault}`);
  }
}

function tensorsOf({ outcome, checkpoint }: Settled): readonly Tensor[] {
  return [...decodeFrame(outcome.body).tensors, ...(checkpoint?.tensors ?? [])];
}
