/** A gateway that may not administer keys, or that asks for none, says so and changes nothing. */
import { beforeAll, describe, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { useKeyedFleet } from "./keyed.js";

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function ask(url: string, call: string, body?: object, key = ""): Promise<Answer> {
  const [method = "", path = ""] = call.split(" ");
  const init = { method, headers: { authorization: `Bearer ${key}` } };
  const bare = key === "" ? { method } : init;
  const response = await fetch(url + path, { ...bare, ...(body && { body: JSON.stringify(body) }) });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

interface Call {
  readonly call: string;
  readonly body?: object;
}

const changes: readonly Call[] = [
  { call: "POST /v2/keys", body: {} },
  { call: "PATCH /v2/keys/none", body: {} },
  { call: "POST /v2/keys/none/rotate" },
  { call: "DELETE /v2/keys/none" },
  { call: "POST /v2/tenants", body: { id: "acme" } },
  { call: "PATCH /v2/tenants/none", body: {} },
  { call: "DELETE /v2/tenants/none" },
];
const reads: readonly Call[] = [
  { call: "GET /v2/keys" },
  { call: "GET /v2/keys/none" },
  { call: "GET /v2/tenants" },
  { call: "GET /v2/tenants/none" },
];

describe("with BATON_ADMIN_API=off", () => {
  const env = { BATON_ADMIN_API: "off" };
  const keyed = useKeyedFleet({ models: ["echo-int32"], jobs: 1, direct: true, env });
  const { served } = keyed;
  let operator = "";
  beforeAll(async () => {
    operator = (await keyed.make({ scopes })).text;
  });

  it.each(changes)("$call is refused", async ({ call, body }) => {
    const { status, body: said } = await ask(served.url, call, body, operator);
    expect([status, said["code"]]).toEqual([501, "unsupported"]);
    expect(said["error"]).toContain("BATON_ADMIN_API");
  });

  it("keys and tenants can be read", async () => {
    expect((await ask(served.url, "GET /v2/keys", undefined, operator)).body["data"]).toHaveLength(1);
    expect((await ask(served.url, "GET /v2/tenants", undefined, operator)).body["data"]).toEqual([]);
    expect((await ask(served.url, "GET /v2/whoami", undefined, operator)).status).toBe(200);
  });
});

/** What a tenant without limits, and without anything else, has used. */
const unused = {
  queued_requests: 0,
  queued_bytes: 0,
  live_sequences: 0,
  jobs: 0,
  schedules: 0,
  webhooks: 0,
  batches: 0,
  files: 0,
  file_bytes: 0,
};

describe("without keys", () => {
  const served = useFleet({ models: ["echo-int32"], jobs: 1, direct: true });

  it.each([...reads, ...changes])("$call is refused", async ({ call, body }) => {
    const { status, body: said } = await ask(served.url, call, body);
    expect([status, said["code"]]).toEqual([501, "unsupported"]);
    expect(said["error"]).toContain("BATON_AUTH");
  });

  it("whoami names the one tenant, and no key", async () => {
    expect((await ask(served.url, "GET /v2/whoami")).body).toEqual({
      tenant: "default",
      auth: "off",
      key: null,
      limits: {},
      used: unused,
    });
  });
});
