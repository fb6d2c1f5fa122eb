/** A gateway's page agrees with its clients. */
import { beforeAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const running = useFleet({ models: ["simple"], env: { BATON_METRICS_PORT: "0" } });

const page = async (): Promise<Page> => {
  const [gateway] = running.fleet.gateways;
  return scrape(await metricsOf((gateway ?? expect.fail("there is a gateway")).member));
};
const valid = JSON.stringify({
  inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(1) })),
});
/** Small bodies are parsed on the socket, and others by node's server. */
let bytesOut = 0;
const post = async (path: string, body: string, headers: Record<string, string> = {}): Promise<number> => {
  const answer = await fetch(running.url + path, { method: "POST", body, headers });
  bytesOut += (await answer.arrayBuffer()).byteLength;
  return answer.status;
};
const sumOf = (one: Page, name: string, part = ""): number => {
  let sum = 0;
  for (const [series, value] of one.samples) if (series.startsWith(`${name}{`) && series.includes(part)) sum += value;
  return sum;
};

describe("a gateway's page", () => {
  let before: Page;
  beforeAll(async () => (before = await page()));

  it("counts answers by route, and refusals by code", async () => {
    const infer = "/v2/models/simple/infer";
    const keyed = { "idempotency-key": "again" };
    const statuses = [
      await post(infer, valid),
      await post("/v2/models/simple/versions/1/infer", valid),
      await post(infer, valid, keyed),
      await post(infer, valid, keyed),
      await post(infer, "{"),
      await post("/v2/models/<img>/infer", valid),
      await post("/v2/models/nobody-has-it/infer", valid),
      await post("/no/such/path", ""),
      await post("/v2/health/live", ""),
    ];
    expect(statuses).toEqual([200, 200, 200, 200, 400, 404, 404, 404, 405]);
    const all = (one: Page) => sumOf(one, "baton_http_requests_total") - sumOf(before, "baton_http_requests_total");
    const after = await readUntil(page, (one) => all(one) >= statuses.length);
    expect(all(after)).toBe(statuses.length);
    const added = (name: string, part = "") => sumOf(after, name, part) - sumOf(before, name, part);
    const route = (pattern: string, status: string) =>
      added("baton_http_requests_total", `route="${pattern}",method="POST",status="${status}"`);
    expect({
      infer: route("/v2/models/:model/infer", "2xx"),
      version: route("/v2/models/:model/versions/:version/infer", "2xx"),
      refused: route("/v2/models/:model/infer", "4xx"),
      none: route("none", "4xx"),
      refusals: added("baton_refusals_total"),
      unknown: added("baton_refusals_total", 'code="unknown_model",model=""'),
      ofModel: added("baton_refusals_total", 'model="simple"'),
      bytesIn: added("baton_http_request_bytes_total", 'protocol="kserve"'),
      bytesOut: added("baton_http_response_bytes_total", 'protocol="kserve"'),
      waiting: sumOf(after, "baton_requests_waiting"),
      open: after.value("baton_http_requests_open"),
      inMemory: after.value("baton_http_body_memory_bytes"),
      unread: after.value("baton_http_unread_bytes"),
      durations: added("baton_http_request_duration_seconds_count"),
      admitted: added("baton_admissions_total", 'said="admitted"'),
      known: added("baton_admissions_total", 'said="known"'),
      outcomes: added("baton_outcomes_total"),
      calls: added("baton_redis_calls_total", 'call="admit"') > 0,
    }).toEqual({
      infer: 3,
      version: 1,
      refused: 3,
      none: 1,
      refusals: 5,
      unknown: 2,
      ofModel: 1,
      bytesIn: 6 * valid.length + 1,
      bytesOut,
      waiting: 0,
      open: 0,
      inMemory: 0,
      unread: 0,
      durations: 9,
      admitted: 3,
      known: 1,
      outcomes: 3,
      calls: true,
    });
    // No text of a client is in a label.
    expect(after.text).not.toMatch(/img|nobody-has-it|no\/such/);
  });

  it("counts a request whose deadline passes once, and an open connection", async () => {
    const expired = (one: Page) => sumOf(one, "baton_expired_total", 'model="simple"');
    const failed = (one: Page) => sumOf(one, "nv_inference_request_failure", 'reason="REJECTED"');
    const [earlier, worker] = [await page(), running.fleet.workers[0] ?? expect.fail("there is a worker")];
    const ofWorker = async () => scrape(await metricsOf(worker));
    const earlierAtWorker = await ofWorker();
    const late = { ...(JSON.parse(valid) as object), parameters: { timeout: 1 } };
    const statuses = await Promise.all([1, 2, 3].map(() => post("/v2/models/simple/infer", JSON.stringify(late))));
    const timeouts = statuses.filter((status) => status !== 200).length;
    const sum = async () => {
      const [here, there] = [await page(), await ofWorker()];
      const ends = expired(here) + expired(there) - expired(earlier) - expired(earlierAtWorker);
      return [ends, failed(here) + failed(there) - failed(earlier) - failed(earlierAtWorker)];
    };
    expect(await readUntil(sum, ([ends = 0]) => ends >= timeouts)).toEqual([timeouts, timeouts]);
    expect((await page()).value("baton_http_connections")).toBeGreaterThan(0);
  });

  it("says what runs, and that the brokers are there", async () => {
    const now = await page();
    expect(now.value("baton_redis_up")).toBe(1);
    expect(now.value("baton_nats_up")).toBe(1);
    expect(now.value("baton_redis_reconnects_total")).toBe(0);
    expect(now.text).toMatch(
      /^baton_build_info\{version="[\d.]+",node="[\d.]+",role="gateway",durability="strict"\} 1$/m,
    );
    expect(now.value('baton_event_loop_delay_seconds{quantile="0.99"}')).toBeGreaterThanOrEqual(0);
  });
});
