/** Refused requests in the log that an operator reads, in which no key stands in any place. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { newKey } from "../../gateway/auth/key.js";
import { rawExchange } from "../support/gateway/http.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { keyedEnv, useFolder, useKeys } from "./keyed.js";

const folder = useFolder();
const keyed = keyedEnv(folder);
const served = useFleet({
  workers: 0,
  models: [],
  direct: true,
  env: { ...keyed, BATON_TRUSTED_PROXIES: "127.0.0.1" },
});
const keys = useKeys(served);

const gateway = () => served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
const port = (): number => Number(new URL(served.url).port);
const send = (head: readonly string[], path = "/v2/jobs", method = "GET"): Promise<string> =>
  rawExchange(
    port(),
    [`${method} ${path} HTTP/1.1`, "Host: localhost", ...head, "Connection: close", "", ""].join("\r\n"),
  );
const bearer = (text: string): string => `Authorization: Bearer ${text}`;
/** Waits for a line of the audit with these members. */
const audited = async (members: object): Promise<Readonly<Record<string, unknown>>> => {
  const isIt = (fields: Readonly<Record<string, unknown>>): boolean =>
    Object.entries({ audit: true, ...members }).every(([name, value]) => fields[name] === value);
  return (await gateway().waitForLine(JSON.stringify(members), ({ fields }) => isIt(fields))).fields;
};

describe("a refused request", () => {
  it("is a line of the audit, with its reason, its key and its client behind the proxy", async () => {
    const { id, text } = await keys.make({ scopes: ["infer"] });
    const from = (address: string): string => `X-Forwarded-For: 1.1.1.1, ${address}`;
    await send([from("203.0.113.1")]);
    expect(await audited({ event: "auth_failed", reason: "missing" })).toMatchObject({
      method: "GET",
      path: "/v2/jobs",
      status: 401,
      address: "203.0.113.1",
      process: expect.stringMatching(/^gw-/) as string,
      request_id: expect.any(String) as string,
    });
    await send([bearer(newKey().text), from("203.0.113.2")], "/v2/jobs?after=secret");
    expect(await audited({ event: "auth_failed", reason: "unknown" })).toMatchObject({
      path: "/v2/jobs",
      address: "203.0.113.2",
    });
    await send([bearer("a.b.c")]);
    expect(await audited({ event: "auth_failed", reason: "kind" })).toMatchObject({ address: "127.0.0.1" });
    await send([bearer(text)]);
    expect(await audited({ event: "scope_refused" })).toMatchObject({
      key_id: id,
      tenant: "acme",
      scope: "read",
      status: 403,
    });
    await keys.keys.revoke(id);
    await expect.poll(() => send([bearer(text)])).toContain("revoked_api_key");
    expect(await audited({ event: "auth_failed", reason: "revoked" })).toMatchObject({ key_id: id, tenant: "acme" });
  });

  it("is a line also if it would open a WebSocket, or if the rules for browsers refuse it", async () => {
    const upgrade = ["Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"];
    const asks = (...head: string[]): Promise<string> =>
      rawExchange(
        port(),
        [
          "GET /v2/requests/none/ws HTTP/1.1",
          "Host: localhost",
          "Connection: Upgrade",
          ...upgrade,
          ...head,
          "",
          "",
        ].join("\r\n"),
      );
    expect(await asks()).toContain("401 Unauthorized");
    expect(await audited({ event: "auth_failed", path: "/v2/requests/none/ws" })).toMatchObject({ reason: "missing" });
    expect(await asks("Origin: https://evil.example")).toContain("403 Forbidden");
    expect(await audited({ event: "origin_refused" })).toMatchObject({ reason: "https://evil.example", status: 403 });
    await rawExchange(port(), "GET /v2 HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    expect(await audited({ event: "host_refused" })).toMatchObject({ reason: "evil.example" });
  });

  it("is one line with many others of its kind", async () => {
    const { id, text } = await keys.make({ scopes: [] });
    await Promise.all(Array.from({ length: 50 }, () => send([bearer(text)])));
    const counts = (): number[] =>
      gateway()
        .lines.filter(({ fields }) => fields["key_id"] === id)
        .map(({ fields }) => Number(fields["count"]));
    await expect.poll(() => counts().reduce((sum, count) => sum + count, 0)).toBe(50);
    expect(counts().length).toBeLessThan(50);
  });
});

describe("a key in a wrong form or place", () => {
  const lookUps = async (): Promise<string | undefined> =>
    /cmdstat_mget:calls=(\d+)/.exec(await keys.redis.info("commandstats"))?.[1];

  it.each<[string, (key: string) => readonly string[]]>([
    ["with a wrong checksum", (key) => [bearer(`${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`)]],
    ["with a NUL", (key) => [bearer(`${key}\0`)]],
    ["with UTF-8", (key) => [bearer(`${key}é`)]],
    ["of 8 KB", (key) => [bearer(key.padEnd(8_192, "a"))]],
    ["with a prefix in capital letters", (key) => [bearer(key.replace("bt_", "BT_"))]],
    ["with blanks", (key) => [bearer(key.replace("_", " _"))]],
    ["beside another, with a comma", (key) => [bearer(`${key},${newKey().text}`)]],
    ["in two headers", (key) => [bearer(key), bearer(newKey().text)]],
    ["as the password of Basic", (key) => [`Authorization: Basic ${Buffer.from(`x:${key}`).toString("base64")}`]],
    ["in the header Referer", (key) => [`Referer: http://localhost/?key=${key}`]],
    ["in a cookie", (key) => [`Cookie: key=${key}`]],
  ])("%s is refused without a look-up, and in no log", async (_, head) => {
    const { text } = await keys.make();
    const before = await lookUps();
    const answer = await send(head(text));
    expect(answer).toMatch(/^HTTP\/1\.1 (?:400|401|431) /);
    expect(answer).not.toContain(text.slice(16));
    expect(await lookUps()).toBe(before);
  });

  it.each(["?api_key=KEY", "?key=KEY", "?access_token=KEY", "?ticket=KEY", "/KEY"])(
    "in the URL, as %s, is refused and in no log",
    async (place) => {
      const { text } = await keys.make();
      const answer = await send([`X-Request-Id: ${text}`], `/v2/jobs${place.replace("KEY", text)}`);
      expect(answer).toContain("missing_api_key");
      if (place.startsWith("?")) expect(answer).toContain("keys do not belong into URLs");
    },
  );

  it("in a body is refused", async () => {
    const { text } = await keys.make();
    const body = JSON.stringify({ api_key: text });
    expect(await send([`Content-Length: ${body.length}`], "/v2/jobs", "POST")).toContain("missing_api_key");
  });

  it("has left no trace in the log, whose lines are whole", async () => {
    const { text } = await keys.make({ scopes: [] });
    await send([bearer(text)], "/v2/last");
    await audited({ event: "auth_failed", reason: "missing" });
    for (const { text: line, fields } of gateway().lines) {
      expect(line).not.toMatch(/[0-9A-Za-z]{32}/);
      expect(fields).not.toEqual({});
    }
  });
});

describe("the program `keys`", () => {
  it("notes each change on standard error, because standard output is for keys", () => {
    const program = (...args: string[]) => {
      const env = { ...process.env, ...keyed, BATON_REDIS_URL: served.fleet.redis.url };
      const { stdout, stderr } = spawnSync(
        process.execPath,
        [join(root, "dist/gateway/auth/program/main.js"), ...args],
        {
          env,
          encoding: "utf8",
        },
      );
      const lines = stderr.split("\n").filter((line) => line.startsWith('{"audit"'));
      return { stdout: stdout.trim(), lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
    };
    const made = program("create", "--tenant", "acme");
    expect(made.stdout).toMatch(/^bt_\w+$/);
    const id = made.stdout.split("_")[1] ?? "";
    const about = { audit: true, key_id: id, tenant: "acme", actor: "keys", process: "keys", count: 1 };
    expect(made.lines).toMatchObject([{ ...about, event: "key_created" }]);
    const newer = program("rotate", id);
    expect(newer.lines).toMatchObject([
      { ...about, event: "key_rotated", reason: `replaced by ${newer.stdout.split("_")[1]}` },
    ]);
    expect(program("revoke", id).lines).toMatchObject([{ ...about, event: "key_revoked" }]);
    expect(program("require", "on").lines).toMatchObject([{ event: "auth_required", reason: "on" }]);
    expect(JSON.stringify([made.lines, newer.lines])).not.toContain(made.stdout.slice(16));
  });
});
