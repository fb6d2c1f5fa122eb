/** Requests that a gateway ends are failures in the statistics, once, and outlive the gateway. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { infer, simple, statistics, step } from "./load.js";

const MODEL = "gen-cheap";
const running = useFleet({
  models: ["simple", "accumulate", MODEL],
  gateways: 2,
  workers: 1,
  env: { BATON_HISTORY: "false" },
});
const MANY = 12;
const urls = () => running.fleet.urls;
const urlAt = (i: number) => urls()[i % urls().length] ?? "";
const [worker, other] = [
  () => running.fleet.workers[0] ?? expect.fail("there is a worker"),
  () => running.fleet.gateways[1]?.member ?? expect.fail("there is a second gateway"),
];

const failOf = async (url: string, model: string) =>
  (await statistics(url, `${model}/stats`))[0]?.inference_stats.fail ?? expect.fail("the model is served");
/** Once a gateway says so many; another gateway's report comes within seconds. */
const settledAt = (url: string, model: string, count: number) =>
  readUntil(
    () => failOf(url, model),
    (fail) => fail.count >= count,
    { patienceMs: 15_000 },
  );

describe("the statistics of requests that a gateway ends", () => {
  it("have each whose deadline passes in the queue, at once at its gateway, and soon at the other", async () => {
    worker().freeze();
    const late = { ...simple, parameters: { timeout: 200_000 } };
    const waits = Array.from({ length: MANY }, (_, i) => infer(urlAt(i), "simple", late));
    const begins = step(1, { sequence_start: true, timeout: 200_000 });
    const statuses = await Promise.all([...waits, infer(running.url, "accumulate", begins)]);
    expect(new Set(statuses)).toEqual(new Set([503]));
    // Its own half, without a report on the way.
    const here = await readUntil(
      () => failOf(running.url, "simple"),
      (fail) => fail.count >= MANY / 2,
      { patienceMs: 2_000 },
    );
    expect(here.count).toBeGreaterThanOrEqual(MANY / 2);
    worker().thaw();
    for (const url of urls()) {
      const fail = await settledAt(url, "simple", MANY);
      expect(fail.count).toBe(MANY);
      expect(fail.ns).toBeGreaterThanOrEqual(MANY * 200e6);
      expect((await settledAt(url, "accumulate", 1)).count).toBe(1);
    }
    // The worker that comes to these requests counts none of them again.
    expect(await infer(running.url, "simple", simple)).toBe(200);
    const [after] = await statistics(running.url, "simple/stats");
    expect(after?.inference_stats.fail.count).toBe(MANY);
  });

  it("have a generation that its client deletes, under its version", async () => {
    const body = JSON.stringify({ text_input: "once upon", max_tokens: 50_000, ignore_eos: true });
    const begun = await fetch(`${urlAt(0)}/v2/models/${MODEL}/generate_stream`, { method: "POST", body });
    const id = begun.headers.get("baton-request-id") ?? expect.fail("the answer names the request");
    const deleted = await fetch(`${urlAt(1)}/v2/requests/${id}`, { method: "DELETE" });
    expect(deleted.status).toBeLessThan(300);
    await begun.text().catch(() => "");
    const counts = urls().map(async (url) => (await settledAt(url, MODEL, 1)).count);
    expect(await Promise.all(counts)).toEqual([1, 1]);
  });

  it("keep all of a gateway that leaves", async () => {
    await other().terminate();
    expect((await failOf(running.url, "simple")).count).toBe(MANY);
    expect((await failOf(running.url, MODEL)).count).toBe(1);
  });
});
