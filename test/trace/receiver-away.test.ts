/** A receiver of traces that hangs, refuses or is gone keeps no request from its answer. */
import { afterAll, describe, expect, it } from "vitest";
import { simple } from "../edition/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { TraceReceiver } from "../support/traces/receiver.js";
import { clientsTrace } from "../support/traces/spans.js";
import { until } from "../support/until.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const DROPPED = "spans dropped: the receiver of traces does not take them";

describe("a fleet that traces every request", () => {
  const served = useFleet({
    models: ["simple"],
    direct: true,
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "1" },
  });

  const members = () => [...served.fleet.gateways.map(({ member }) => member), ...served.fleet.workers];

  async function answerAll(): Promise<void> {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => simple(served.url, i)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  }

  /** Sends traced requests until the receiver has a span of one of them. */
  async function comeBackBy(come: () => Promise<void> | void): Promise<void> {
    await come();
    const traces: string[] = [];
    await until(async () => {
      const { traceId, headers } = clientsTrace();
      traces.push(traceId);
      await simple(served.url, 1, {}, headers);
      return traces.some((trace) => receiver.of(trace).length > 0);
    });
  }

  it("answers while the receiver hangs, and the traces come back with it", async () => {
    receiver.manner = "hang";
    await answerAll();
    await until(() => members().every((member) => member.logged(DROPPED, "spans") > 0));
    await comeBackBy(() => void (receiver.manner = "take"));
  });

  it("answers while the receiver refuses, and the traces come back with it", async () => {
    receiver.manner = "refuse";
    await answerAll();
    await comeBackBy(() => void (receiver.manner = "take"));
  });

  it("answers while the receiver is gone, and the traces come back with it", async () => {
    await receiver.leave();
    await answerAll();
    await comeBackBy(() => receiver.comeBack());
  });

  it("stops although the receiver hangs", async () => {
    receiver.manner = "hang";
    await answerAll();
    const ends = await Promise.all(members().map((member) => member.terminate()));
    expect(ends.map(({ code }) => code)).toEqual(ends.map(() => 0));
  });
});
