/** Every declared path asks for a key, and for the right that it declares. */
import { describe, expect, it } from "vitest";
import { newKey } from "../../gateway/auth/key.js";
import type { KeyTerms } from "../../gateway/auth/keys.js";
import { hasScope, scopes, usualScopes, type Scope } from "../../gateway/auth/owner/scopes.js";
import { endpoints } from "../../gateway/endpoints.js";
import { answerText } from "../support/answer-text.js";
import { rawPost, statusesIn } from "../fixtures/requests.js";
import { rawExchange } from "../support/gateway/http.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const OPEN = ["health", "metadata"];
const fleet = useKeyedFleet({
  models: ["echo-int32", "accumulate"],
  jobs: 1,
  direct: true,
  env: { BATON_AUTH_OPEN: OPEN.join() },
});
const { served } = fleet;
const make = (scopes: readonly Scope[] = usualScopes, more: Partial<KeyTerms> = {}): Promise<Key> =>
  fleet.make({ scopes, ...more });

interface Answer {
  readonly status: number;
  readonly challenge: string | null;
  readonly text: string;
}

async function ask(path: string, key?: string, init: RequestInit = {}): Promise<Answer> {
  const headers = new Headers(init.headers);
  if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
  const response = await fetch(`${served.url}${path}`, { ...init, headers });
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    text: await answerText(response),
  };
}

/** A path that a client could ask, with names for the segments that clients choose. */
const asked = (path: string): string =>
  path
    .replaceAll(/:version\{[^}]*\}/g, "1")
    .replaceAll(":model", "echo-int32")
    .replaceAll(/:\w+/g, "none");

const codeIn = ({ text }: Answer): unknown => {
  const { code, error } = JSON.parse(text) as { code?: string; error: { code?: string } | string };
  return code ?? (typeof error === "object" ? error.code : undefined);
};

/** A gateway looks up 200 keys a second, so paths share keys. */
const WRONG = newKey().text;
const shared = new Map<string, Promise<Key>>();
function keyWith(scopes: readonly Scope[]): Promise<Key> {
  const key = shared.get(scopes.join()) ?? make(scopes);
  shared.set(scopes.join(), key);
  return key;
}

describe("every declared path", () => {
  const isGuarded = ({ open }: (typeof endpoints)[number]) =>
    open !== "always" && (open === undefined || !OPEN.includes(open));
  const guarded = endpoints.filter(isGuarded);

  it.each(guarded.map((one) => [one.method, one.path, one] as const))("%s %s", async (method, path, endpoint) => {
    const at = asked(path);
    const none = await ask(at, undefined, { method });
    expect([none.status, codeIn(none), none.challenge]).toEqual([401, "missing_api_key", 'Bearer realm="baton"']);
    const wrong = await ask(at, WRONG, { method });
    expect([wrong.status, codeIn(wrong)]).toEqual([401, "invalid_api_key"]);
    expect(wrong.challenge).toBe('Bearer realm="baton", error="invalid_token"');
    const right = endpoint.right ?? endpoint.otherRight ?? "read";
    if (right === "any") {
      expect((await ask(at, (await keyWith([])).text, { method })).status).toBe(200);
      return;
    }
    const lacking = await keyWith(scopes.filter((scope) => !hasScope(new Set([scope]), right)));
    const refused = await ask(at, lacking.text, { method });
    expect([refused.status, codeIn(refused)]).toEqual([403, "insufficient_scope"]);
    expect(refused.challenge).toBe(`Bearer realm="baton", error="insufficient_scope", scope="${right}"`);
    expect(refused.text).toContain(`the API key lacks the scope '${right}'`);
    const { text } = await keyWith([right]);
    expect([401, 403]).not.toContain((await ask(at, text, { method })).status);
  });

  it("of the console is open, since its files hold no data", async () => {
    const always = endpoints.filter(({ open }) => open === "always");
    expect(always.map(({ path }) => path)).toEqual(["/console", "/console/", "/console/:file"]);
    for (const { path } of always) {
      for (const key of [undefined, WRONG]) {
        const { status } = await ask(asked(path), key);
        expect([path, status]).toEqual([path, path.endsWith(":file") ? 404 : 200]);
      }
    }
  });

  it("is there for a key only: others are 401 without one, and 404 or 405 with one", async () => {
    const { text } = await make();
    for (const path of ["/v2/none", "/v1/none", "/none"]) {
      expect([(await ask(path)).status, (await ask(path, text)).status]).toEqual([401, 404]);
    }
    const method = { method: "DELETE" };
    expect([(await ask("/v2/jobs", undefined, method)).status, (await ask("/v2/jobs", text, method)).status]).toEqual([
      401, 405,
    ]);
  });

  it("is open without a key if the deployment says so", async () => {
    for (const path of ["/v2/health/live", "/v2/health/ready", "/v2", "/v2/models/echo-int32", "/v1/models"]) {
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
    }
  });
});

describe("an inference", () => {
  const path = "/v2/models/echo-int32/infer";
  const body = JSON.stringify({ inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }] });
  const port = (): number => Number(new URL(served.url).port);

  it.each([
    ["parsed on the socket", []],
    ["parsed by node", ["X:1"]],
  ])("%s needs a key with its scope", async (_, more) => {
    const send = (...fields: string[]) =>
      rawExchange(port(), rawPost(path, body, [...more, ...fields, "Connection: close"]));
    const plainly = (...fields: string[]) => rawExchange(port(), rawPost(path, body, [...more, ...fields]), /\}$/);
    const sent = more.length === 0 ? plainly : send;
    const [good, lacking] = [await make(["infer"]), await make(["read"])];
    expect(statusesIn(await sent(`Authorization: Bearer ${good.text}`))).toEqual([200]);
    expect(statusesIn(await sent(`X-Api-Key: ${good.text}`))).toEqual([200]);
    expect(statusesIn(await sent())).toEqual([401]);
    expect(statusesIn(await sent(`api-key: ${newKey().text}`))).toEqual([401]);
    expect(statusesIn(await sent(`Authorization: Bearer ${lacking.text}`))).toEqual([403]);
    const two = await sent(`Authorization: Bearer ${good.text}`, `Authorization: Bearer ${lacking.text}`);
    expect(two).toContain("more than one credential");
  });

  it("is for the models that the key allows, and no other model exists", async () => {
    const { text } = await make(usualScopes, { models: ["accumulate"] });
    const [hidden, none] = [
      await ask(path, text, { method: "POST", body }),
      await ask(path.replace("int32", "none"), text, { method: "POST", body }),
    ];
    expect(hidden.status).toBe(404);
    expect(hidden.text).toBe(none.text.replace("echo-none", "echo-int32"));
    const models = JSON.parse((await ask("/v2/repository/index", text, { method: "POST" })).text) as { name: string }[];
    expect(models.map(({ name }) => name)).toEqual(["accumulate"]);
  });

  it("is of the tenant of its key", async () => {
    const step = (start: boolean) =>
      JSON.stringify({
        parameters: { sequence_id: 7, sequence_start: start },
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
      });
    const [acme, other] = [await make(), await make(usualScopes, { tenant: "other" })];
    const at = "/v2/models/accumulate/infer";
    expect((await ask(at, acme.text, { method: "POST", body: step(true) })).status).toBe(200);
    expect((await ask(at, acme.text, { method: "POST", body: step(false) })).status).toBe(200);
    expect(codeIn(await ask(at, other.text, { method: "POST", body: step(false) }))).toBe("sequence_start_required");
    const sequence = "/v2/models/accumulate/sequences/7";
    expect((await ask(sequence, acme.text)).status).toBe(200);
    const [foreign, never] = [await ask(sequence, other.text), await ask(sequence.replace("7", "8"), other.text)];
    expect([foreign.status, foreign.text]).toEqual([404, never.text.replace("8", "7")]);
  });
});

describe("a key", () => {
  it("is good until it is revoked, on every path, within five seconds", async () => {
    const { id, text } = await make();
    expect((await ask("/v2/jobs", text)).status).toBe(200);
    await fleet.keys.revoke(id);
    await expect.poll(async () => codeIn(await ask("/v2/jobs", text)), { timeout: 5_000 }).toBe("revoked_api_key");
  });

  it("is good beside the key that replaces it, until the overlap is over", async () => {
    const { id, text } = await make();
    const { text: newer, record } = await fleet.keys.rotate(id, 60_000, undefined);
    expect([(await ask("/v2/jobs", text)).status, (await ask("/v2/jobs", newer)).status]).toEqual([200, 200]);
    expect([record.rotatedFrom, record.scopes]).toEqual([id, [...usualScopes]]);
    const { text: third } = await fleet.keys.rotate(record.id, 0, undefined);
    expect((await ask("/v2/jobs", third)).status).toBe(200);
    await expect.poll(async () => codeIn(await ask("/v2/jobs", newer)), { timeout: 5_000 }).toBe("expired_api_key");
  });

  it("is refused in OpenAI's shape on OpenAI's paths", async () => {
    const { status, text } = await ask("/v1/chat/completions", newKey().text, { method: "POST", body: "{}" });
    expect(status).toBe(401);
    expect(JSON.parse(text)).toEqual({
      error: {
        message: "the API key is not valid",
        type: "invalid_request_error",
        param: null,
        code: "invalid_api_key",
      },
    });
  });
});
