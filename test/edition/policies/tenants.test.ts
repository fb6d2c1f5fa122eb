/** A request belongs to the tenant that a proxy names in a header. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { ask, stepBody } from "../ask.js";
import { buckets } from "../settings.js";
import { TENANT_HEADER } from "./backlog.js";

const served = useFleet({
  models: ["accumulate", "gen-cheap"],
  env: { ...buckets(4), BATON_TENANT_HEADER: "X-Tenant" },
  direct: true,
});
const as = (tenant: string, more: Record<string, string> = {}) => ({ headers: { [TENANT_HEADER]: tenant, ...more } });
const step = (tenant: string, value: number, start = false, key?: string) =>
  ask(
    `${served.url}/v2/models/accumulate/infer`,
    stepBody({ sequence: 7, value, start }),
    as(tenant, key === undefined ? {} : { "idempotency-key": key }),
  );

describe("two tenants", () => {
  it("have sequences of their own under the same id, and keys of their own", async () => {
    expect((await step("acme", 1, true, "k")).output).toBe(1);
    expect((await step("globex", 10, true, "k")).output).toBe(10);
    expect((await step("acme", 2)).output).toBe(3);
    expect((await step("globex", 20)).output).toBe(30);
  });

  it("do not see each other's requests on any path", { timeout: 60_000 }, async () => {
    const prompt = { text_input: "a", parameters: { max_tokens: 4 } };
    const began = await fetch(`${served.url}/v2/models/gen-cheap/generate`, {
      method: "POST",
      body: JSON.stringify(prompt),
      headers: { prefer: "respond-async", [TENANT_HEADER]: "acme" },
    });
    expect(began.status).toBe(202);
    const { id = "" } = (await began.json()) as { id?: string };
    const path = `${served.url}/v2/requests/${id}`;
    const statusOf = async (tenant: string, method = "GET", rest = "") =>
      (await fetch(path + rest, { method, ...as(tenant) })).status;
    expect(await statusOf("globex")).toBe(404);
    expect(await statusOf("globex", "GET", "/events")).toBe(404);
    expect(await statusOf("globex", "POST", "/detach")).toBe(404);
    expect(await statusOf("globex", "DELETE")).toBe(404);
    expect(await statusOf("acme")).toBe(200);
    await expect
      .poll(async () => ((await (await fetch(path, as("acme"))).json()) as { state: string }).state)
      .toBe("completed");
  });

  it("may use OpenAI's paths each as its own", async () => {
    const body = { model: "gen-cheap", prompt: "a", max_tokens: 2 };
    const url = `${served.url}/v1/completions`;
    const answer = await fetch(url, { method: "POST", body: JSON.stringify(body), ...as("acme") });
    expect(answer.status).toBe(200);
    expect((await fetch(url, { method: "POST", body: JSON.stringify(body) })).status).toBe(403);
  });

  it("are not told of each other's load", async () => {
    const told = async (headers: Record<string, string>) => {
      const answer = await fetch(`${served.url}/v2/fleet`, { headers });
      const { queue } = (await answer.json()) as { queue: { requests: number; tenants: { name: string }[] } };
      return [queue.requests, queue.tenants.map(({ name }) => name)];
    };
    // A request leaves the queue after its client has the outcome, and not without a worker.
    await expect.poll(() => told({})).toEqual([0, []]);
    await served.fleet.workers[0]?.kill();
    const body = stepBody({ sequence: 9, value: 1, start: true });
    const url = `${served.url}/v2/models/accumulate/infer`;
    const background = { prefer: "respond-async" };
    for (const tenant of ["acme", "globex"]) expect((await ask(url, body, as(tenant, background))).status).toBe(202);
    await expect.poll(() => told({ [TENANT_HEADER]: "acme" })).toEqual([2, ["acme"]]);
    expect(await told({})).toEqual([2, []]);
    await served.fleet.workers[0]?.start();
  });

  it("are refused where the header is missing, or is no tenant's name", async () => {
    const body = stepBody({ sequence: 8, value: 1, start: true });
    const url = `${served.url}/v2/models/accumulate/infer`;
    expect(await ask(url, body)).toMatchObject({ status: 403, code: "forbidden" });
    for (const name of ["a:b", "{0}", "a b", "a".repeat(65)])
      expect(await ask(url, body, as(name))).toMatchObject({ status: 400, code: "invalid_argument" });
    // The gateway may not have heard yet of the newest worker.
    await expect.poll(async () => (await fetch(`${served.url}/v2/health/ready`)).status).toBe(200);
  });
});
