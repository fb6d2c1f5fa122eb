/** The lanes of a tensor model on a lab's queue, with a model whose runs a test ends itself. */
import { RedisClocks } from "#shared/redis/clock.js";
import { connectBlockingReader } from "#shared/redis/connect.js";
import { Exclusive } from "../../../worker/lane/exclusive.js";
import { laneContext, RunningLane } from "../../../worker/lane/lane.js";
import { Reader } from "../../../worker/lane/reader.js";
import type { ModelHost, RunResult } from "../../../worker/tensors/host.js";
import { TensorWork } from "../../../worker/tensors/loop.js";
import type { ServingModel } from "../../../worker/tensors/serving.js";
import { silentBus, silentLog } from "../silent.js";
import { steady, type Lab } from "./lab.js";

export interface SlowModel {
  readonly model: ServingModel;
  /** The runs that the model's threads have got, in their order. A call ends the run. */
  readonly begun: (() => void)[];
  /** The instance of each run. */
  readonly instances: number[];
}

/** Makes a stateless model whose runs last until the test ends them. */
export function slowModel(maxBatchSize = 4, instances = 1): SlowModel {
  const begun: (() => void)[] = [];
  const ran: number[] = [];
  const [host, ...others] = Array.from({ length: instances }, (_, instance): ModelHost => ({
    graph: { inputs: [], outputs: [] },
    run: (_inputs, _outputs, _rows, begin) =>
      new Promise<RunResult | undefined>((resolve) => {
        ran.push(instance);
        begun.push(() => {
          const isTakenBack = begin?.begin() === false;
          resolve(isTakenBack ? undefined : { outputs: [], ranMs: 1, letGo: () => undefined });
        });
      }),
    close: () => Promise.resolve(),
  }));
  if (host === undefined) throw new RangeError("a model has an instance");
  const model: ServingModel = {
    name: "m",
    version: "1",
    batching: { batched: true, shared: new Set() },
    layouts: { inputs: new Map(), outputs: new Map() },
    constants: [],
    limits: { maxBatchSize, maxDelayMs: 0, preferred: [] },
    controls: [],
    states: [],
    maxIdleMs: undefined,
    history: 1,
    host,
    others,
  };
  return { model, begun, instances: ran };
}

export async function openTensorLane(lab: Lab, model: ServingModel): Promise<RunningLane> {
  const { queue, url } = lab;
  const { redis, consumer } = queue;
  const blocking = connectBlockingReader({ url, name: "reader", log: silentLog });
  const reader = new Reader({ redis: blocking, commands: redis, consumer, log: silentLog });
  const clocks = new RedisClocks(redis);
  await clocks.read();
  const context = laneContext({
    queue,
    bus: silentBus,
    replies: lab.repliesOf(),
    clocks,
    maxIdleMs: model.maxIdleMs,
    outageGuard: steady(),
    models: 1,
    living: () => 1,
    stateCacheBytes: 1_000,
    room: reader.room,
    log: silentLog,
  });
  const limits = { maxStateBytes: 1_000 };
  const work = new TensorWork(model, context, { exclusive: new Exclusive(), limits, maxRunsAlone: 3 });
  return new RunningLane(context, work, reader);
}
