/**
 * A receiver of traces that hangs, refuses, floods or is gone keeps no request from its answer.
 * Processes count the spans that it does not get.
 */
import { afterAll, describe, expect, it } from "vitest";
import { simple } from "../edition/ask.js";
import { metricsOf, scrape } from "../metrics/scrape.js";
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
    jobs: 1,
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "1", BATON_METRICS_PORT: "0" },
  });

  const members = () => [...served.fleet.gateways.map(({ member }) => member), ...served.fleet.workers];

  /** How many spans each process has dropped. */
  async function dropped(): Promise<readonly number[]> {
    const pages = await Promise.all(members().map(async (member) => scrape(await metricsOf(member))));
    return pages.map((page) => page.value("baton_spans_dropped_total"));
  }

  /** Waits until each process has dropped more spans than before. */
  async function dropMoreThan(before: readonly number[]): Promise<void> {
    await until(async () => (await dropped()).every((spans, i) => spans > (before[i] ?? 0)));
  }

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
    expect(await dropped()).toEqual(members().map(() => 0));
    receiver.manner = "hang";
    await answerAll();
    await dropMoreThan([]);
    await until(() => members().every((member) => member.logged(DROPPED, "spans") > 0));
    await comeBackBy(() => void (receiver.manner = "take"));
  });

  it("answers while the receiver refuses, and the traces come back with it", async () => {
    const before = await dropped();
    receiver.manner = "refuse";
    await answerAll();
    await dropMoreThan(before);
    await comeBackBy(() => void (receiver.manner = "take"));
  });

  it("answers while the receiver's answers have no end, and the traces come back with it", async () => {
    const before = await dropped();
    receiver.manner = "flood";
    await answerAll();
    await dropMoreThan(before);
    await comeBackBy(() => void (receiver.manner = "take"));
  });

  it("answers while the receiver is gone, and the traces come back with it", async () => {
    const before = await dropped();
    await receiver.leave();
    await answerAll();
    await dropMoreThan(before);
    await comeBackBy(() => receiver.comeBack());
  });

  it("stops although the receiver hangs", async () => {
    receiver.manner = "hang";
    await answerAll();
    const ends = await Promise.all([...members(), ...served.fleet.jobs].map((member) => member.terminate()));
    expect(ends.map(({ code }) => code)).toEqual(ends.map(() => 0));
  });
});
