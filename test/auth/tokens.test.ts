/**
 * A token of the operator's identity provider lets a client in as a key does: on every door, for
 * its tenant, until its end or until the tenant is suspended.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { AuthenticationError, OpenAI } from "openai";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { keyedEnv, useFolder, useKeys } from "./keyed.js";

const MODEL = "gen-mha";
const ISSUER = "https://id.example/";

/** The issuer's keys, as its server shows them. */
const shown: { keys: object[]; isAway: boolean } = { keys: [], isAway: false };
const server: Server = createServer((_, outgoing) => {
  outgoing.statusCode = shown.isAway ? 503 : 200;
  outgoing.end(JSON.stringify({ keys: shown.keys }));
}).listen(0, "127.0.0.1");
await once(server, "listening");
afterAll(() => server.close());

const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
shown.keys.push({ ...(await exportJWK(publicKey)), kid: "one" });

const ofTokens = {
  BATON_AUTH_OPEN: "health,metadata",
  BATON_JWT_JWKS: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
  BATON_JWT_ISSUER: ISSUER,
  BATON_JWT_AUDIENCE: "baton",
  BATON_JWT_SCOPE_CLAIM: "realm_access.roles",
};
const env = { ...keyedEnv(useFolder()), ...ofTokens, BATON_AUTH: "keys,jwt" };
const served = useFleet({ models: [MODEL, "simple"], gateways: 2, direct: true, env });
const keys = useKeys(served);

const sign = (claims: object = {}): Promise<string> =>
  new SignJWT({ tenant: "acme", realm_access: { roles: ["infer", "read", "cancel", "unknown"] }, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .setIssuer(ISSUER)
    .setAudience("baton")
    .setSubject("somebody")
    .setExpirationTime("5 minutes")
    .sign(privateKey);

const bearer = async (claims: object = {}) => ({ authorization: `Bearer ${await sign(claims)}` });

describe("a token", () => {
  it("lets its client in on every door, as its tenant and with its scopes", async () => {
    const headers = await bearer();
    const { body, text } = await ask(`${served.url}/v2/whoami`, { headers });
    expect([body, text]).toMatchObject([{ tenant: "acme", auth: "jwt", key: null, limits: {} }, text]);
    const generated = await ask(`${served.url}/v2/models/${MODEL}/generate`, {
      body: { text_input: "a lap", max_tokens: 3 },
      headers: { ...headers, prefer: "respond-async" },
    });
    expect(generated.status).toBe(202);
    const { id } = generated.body;
    const key = await keys.make({ tenant: "acme" });
    expect((await ask(`${served.url}/v2/requests/${id}`, { headers: key.headers })).status).toBe(200);
    const other = await keys.make({ tenant: "other" });
    expect((await ask(`${served.url}/v2/requests/${id}`, { headers: other.headers })).status).toBe(404);
    const refused = await ask(`${served.url}/v1/files`, { headers });
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("insufficient_scope")]);
  });

  it("is the API key of OpenAI's client, whose error says that a token is not good", async () => {
    const client = async (apiKey: string) => {
      const openai = new OpenAI({ apiKey, baseURL: `${served.url}/v1`, maxRetries: 0 });
      return openai.completions.create({ model: MODEL, prompt: "a lap", max_tokens: 2 });
    };
    expect((await client(await sign())).choices).toHaveLength(1);
    await expect(client(await sign({ tenant: "a:b" }))).rejects.toMatchObject({
      constructor: AuthenticationError,
      code: "invalid_token",
    });
  });

  it("has no other model than those that it names", async () => {
    const headers = await bearer({ models: ["sim*"] });
    const index = await ask(`${served.url}/v2/repository/index`, { method: "POST", headers });
    expect((index.body as unknown as { name: string }[]).map(({ name }) => name)).toEqual(["simple"]);
    const hidden = await ask(`${served.url}/v2/models/${MODEL}/generate`, { body: { text_input: "a" }, headers });
    expect([hidden.status, hidden.body.code]).toEqual([404, "unknown_model"]);
  });

  it.each([
    ["that is not signed by the issuer", "eyJhbGciOiJFUzI1NiJ9.e30.AAAA", "signature cannot be verified"],
    ["without an algorithm", "eyJhbGciOiJub25lIn0.e30.", "signature cannot be verified"],
  ])("is refused: %s", async (_, text, told) => {
    const { status, body, headers } = await ask(`${served.url}/v2/whoami`, {
      headers: { authorization: `Bearer ${text}` },
    });
    expect([status, body.code, body.error]).toEqual([401, "invalid_token", expect.stringContaining(told)]);
    expect(headers.get("www-authenticate")).toBe('Bearer realm="baton", error="invalid_token"');
  });

  it("gets tickets, which every gateway takes", async () => {
    const headers = await bearer();
    const { body } = await ask(`${served.url}/v2/models/${MODEL}/generate`, {
      body: { text_input: "a lap", max_tokens: 3 },
      headers: { ...headers, prefer: "respond-async" },
    });
    const given = await ask(`${served.url}/v2/tickets`, { body: { request: body.id }, headers });
    const { ticket } = given.body as unknown as { readonly ticket: string };
    for (const { url } of served.fleet.gateways) {
      const at = `${url.replace("http", "ws")}/v2/requests/${body.id}/ws`;
      const socket = new WebSocket(at, ["baton.v1", `baton.ticket.${ticket}`]);
      expect(await once(socket, "close").then(([code]) => code as number)).toBe(1_000);
    }
  });

  it("ends with its tenant, within five seconds", async () => {
    const headers = await bearer({ tenant: "late" });
    expect((await ask(`${served.url}/v2/whoami`, { headers })).status).toBe(200);
    await keys.setTenant("late", { state: "suspended" });
    await expect
      .poll(async () => (await ask(`${served.url}/v2/whoami`, { headers })).body.code, { timeout: 5_000 })
      .toBe("tenant_suspended");
  });

  it("of an administrator makes keys, and of an operator acts for tenants", async () => {
    const admin = await bearer({ realm_access: { roles: ["admin", "infer"] } });
    const made = await ask(`${served.url}/v2/keys`, { body: { scopes: ["infer"] }, headers: admin });
    expect([made.status, made.body]).toMatchObject([
      201,
      { tenant: "acme", created_by: expect.stringMatching("^jwt:") },
    ]);
    const wider = await ask(`${served.url}/v2/keys`, { body: { scopes: ["read"] }, headers: admin });
    expect(wider.status).toBe(403);
    const operator = await bearer({ tenant: "ops", realm_access: { roles: ["operator"] } });
    const acting = await ask(`${served.url}/v2/whoami`, { headers: { ...operator, "baton-tenant": "acme" } });
    expect(acting.body).toMatchObject({ tenant: "acme" });
  });

  it("does not get the key of an earlier call that could do more", async () => {
    const all = ["admin", "infer", "read"];
    const wide = await bearer({ realm_access: { roles: all }, sub: "one" });
    const narrow = await bearer({ realm_access: { roles: all }, models: ["simple"], sub: "one" });
    const make = (headers: object) =>
      ask(`${served.url}/v2/keys`, { body: { scopes: ["infer"] }, headers: { ...headers, "idempotency-key": "same" } });
    expect((await make(wide)).status).toBe(201);
    expect((await make(wide)).headers.get("idempotent-replayed")).toBe("true");
    expect((await make(narrow)).status).toBe(403);
  });

  it("is refused beside a key", async () => {
    const { text } = await keys.make();
    const { status, text: told } = await ask(`${served.url}/v2/whoami`, {
      headers: { ...(await bearer()), "api-key": text },
    });
    expect([status, told]).toEqual([400, expect.stringContaining("more than one credential")]);
  });
});

describe("the issuer's keys", () => {
  it("may be away, and tokens are good", async () => {
    shown.isAway = true;
    expect((await ask(`${served.url}/v2/whoami`, { headers: await bearer({ jti: "away" }) })).status).toBe(200);
    shown.isAway = false;
  });
});

describe("a fleet with tokens alone", () => {
  const alone = useFleet({ workers: 0, models: [], direct: true, env: { ...ofTokens, BATON_AUTH: "jwt" } });

  it("lets operators administer tenants, has no keys, and gives no tickets", async () => {
    const headers = await bearer({ tenant: "ops", realm_access: { roles: ["operator", "read"] } });
    const at = (path: string, manner: object = {}) => ask(`${alone.url}${path}`, { headers, ...manner });
    expect((await at("/v2/tenants", { body: { id: "acme", weight: 2 } })).status).toBe(201);
    expect((await at("/v2/tenants/acme", { method: "PATCH", body: { state: "suspended" } })).status).toBe(200);
    const suspended = await bearer();
    await expect
      .poll(async () => (await ask(`${alone.url}/v2/whoami`, { headers: suspended })).body.code, { timeout: 5_000 })
      .toBe("tenant_suspended");
    expect((await at("/v2/keys")).status).toBe(501);
    expect((await at("/v2/tickets", { body: { request: "r" } })).status).toBe(501);
    const { text } = await keys.make();
    const key = await ask(`${alone.url}/v2/whoami`, { headers: { authorization: `Bearer ${text}` } });
    expect([key.status, key.body.code]).toEqual([401, "invalid_api_key"]);
    expect((await at("/v2/tenants/acme", { method: "DELETE" })).status).toBe(204);
  });
});
