/**
 * Queue policies of a model with sequences, which only a configuration in the tutorials' form has:
 * they count for each step.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { stepBody, type Step } from "../ask.js";
import { buckets } from "../settings.js";
import { Backlog, many, READY, type Asked } from "./backlog.js";

/** How long a step of the lowest level may wait. */
const SOON_MS = 300;
/** As many requests of the usual level may be parked. */
const MOST = 12;
const served = useFleet({
  models: ["accumulate"],
  configs: {
    accumulate: `
      name: "accumulate"
      backend: "onnxruntime"
      max_batch_size: 1
      input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
      output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
      dynamic_batching {
        priority_levels: 3
        default_priority_level: 2
        default_queue_policy { max_queue_size: ${MOST} }
        priority_queue_policy { key: 3 value { timeout_action: REJECT default_timeout_microseconds: ${1_000 * SOON_MS} } }
      }
      sequence_batching {
        timeout_action: TIMEOUT_REJECT
        max_sequence_idle_microseconds: 600000000
        control_input [
          { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
          { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
          { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
          { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
        ]
        state [ { input_name: "INPUT_STATE" output_name: "OUTPUT_STATE" data_type: TYPE_INT32 dims: [ 1 ] } ]
      }`,
  },
  env: buckets(1),
  direct: true,
});

let sequences = 0;
/** A step of a sequence of its own, unless `step` names one. */
const at = (priority: number, step: Partial<Step> = {}): Asked => ({
  name: String(priority),
  other: {
    path: "/v2/models/accumulate/infer",
    body: stepBody({ sequence: ++sequences, value: 1, start: true, ...step, parameters: { priority } }),
  },
});
const full = (): Asked[] => many(READY, () => ({ ...at(2), name: "first" }));

describe("steps of sequences", () => {
  it("run by their levels", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full());
    for (const level of [2, 1, 0, 1]) await backlog.wait(many(2, () => at(level)));
    await backlog.run();
    const order = backlog.answered.slice(READY);
    expect(order.slice(0, 4)).toEqual(["1", "1", "1", "1"]);
    expect(order.slice(4).sort()).toEqual(["0", "0", "2", "2"]);
  });

  it("keep the order of their sequence, whatever their levels", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    const sequence = ++sequences;
    await backlog.freeze();
    await backlog.wait(full());
    await backlog.wait([{ ...at(2, { sequence, value: 1 }), name: "one" }]);
    await backlog.wait([{ ...at(1, { sequence, value: 10, start: false }), name: "two" }]);
    await backlog.wait([{ ...at(2), name: "another" }]);
    await backlog.wait([{ ...at(1, { sequence, value: 100, start: false }), name: "three" }]);
    const said = await backlog.run();
    const ofSequence = ["one", "two", "three"];
    expect(backlog.answered.filter((name) => ofSequence.includes(name))).toEqual(ofSequence);
    expect(said.slice(READY).map(({ output }) => output)).toEqual([1, 11, 1, 111]);
  });

  it("are refused past the limit of their level", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full());
    await backlog.wait(many(MOST, () => at(0)));
    const refused = { status: 503, code: "queue_full", error: "Exceeds maximum queue size" };
    expect(await backlog.ask(at(2))).toMatchObject(refused);
    await backlog.wait([at(1)]);
    const said = await backlog.run();
    expect(said.filter(({ status }) => status === 200)).toHaveLength(READY + MOST + 1);
  });

  it(
    "do not run after the time of their policy, and their sequence goes on without them",
    { timeout: 60_000 },
    async () => {
      const backlog = new Backlog(served);
      const sequence = ++sequences;
      await backlog.ask(at(2, { sequence, value: 5 }));
      await backlog.freeze();
      await backlog.wait(full());
      await backlog.wait([at(3, { sequence, value: 10, start: false })]);
      await new Promise((resolve) => setTimeout(resolve, 2 * SOON_MS));
      const said = await backlog.run();
      expect(said.at(-1)).toMatchObject({ status: 503, code: "expired", error: "Request timeout expired" });
      const next = await backlog.ask(at(2, { sequence, value: 100, start: false }));
      expect(next.output).toBe(105);
    },
  );
});
