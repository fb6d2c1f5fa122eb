/**
 * Somebody deletes the queued step of one sequence among more than a thousand whole ones that are
 * at work. Its client is told, and the sequence can go on.
 */
import { expect, it } from "vitest";
import { queued } from "../support/queued.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { add, type Said } from "./ask.js";
import { buckets } from "./settings.js";

const WHOLE = 1_100;
/** Longer than this test lasts. */
const FOREVER_US = 600_000_000;
/** All of the model's requests wait in the worker, so its sequences are at work all the time. */
const patient = `
  name: "accumulate"
  backend: "onnxruntime"
  max_batch_size: 4096
  input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
  output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
  sequence_batching {
    max_sequence_idle_microseconds: ${FOREVER_US}
    oldest { max_candidate_sequences: 4096 max_queue_delay_microseconds: ${FOREVER_US} }
    control_input [
      { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
      { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
      { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
      { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
    ]
    state [
      {
        input_name: "INPUT_STATE"
        output_name: "OUTPUT_STATE"
        data_type: TYPE_INT32
        dims: [ 1 ]
        initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true }
      }
    ]
  }`;

const served = useFleet({
  gateways: 1,
  workers: 1,
  models: ["accumulate"],
  configs: { accumulate: patient },
  env: buckets(1),
  direct: true,
});

it("tells the client of the one that was broken", { timeout: 120_000 }, async () => {
  const redis = served.fleet.redis.connect();
  const answered: Said[] = [];
  const start = async (sequence: number) => {
    const said = await add(served.url, { sequence, value: 1, start: true }, 100_000);
    answered.push(said);
    return said;
  };
  for (let sequence = 1; sequence <= WHOLE; sequence++) void start(sequence);
  await expect.poll(() => queued(redis)).toBe(WHOLE);

  // By its name it is the last of them, and so is its entry.
  const broken = start(999_999_999);
  await expect.poll(() => queued(redis)).toBe(WHOLE + 1);
  const [key = ""] = await redis.keys("ready:*");
  const [newest] = await redis.xrevrange(key, "+", "-", "COUNT", 1);
  expect(await redis.xdel(key, newest?.[0] ?? "")).toBe(1);

  await expect.poll(() => answered).toHaveLength(1);
  expect(await broken).toMatchObject({ status: 500, code: "request_lost" });
  redis.disconnect();
});
