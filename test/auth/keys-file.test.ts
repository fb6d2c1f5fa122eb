/** Gateways with a file of keys: its faults, its changes, and the same key in Redis. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Audit } from "../../gateway/auth/audit.js";
import { FileKeys } from "../../gateway/auth/file-keys.js";
import { readKeysFile } from "../../gateway/auth/keys-file.js";
import type { KeyRecord } from "../../gateway/auth/owner/records.js";
import { writeKey, writeTenant } from "#shared/queue/owners/write-owner.js";
import type { Member } from "../support/fleet/member.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { metricsOf, scrape } from "../metrics/scrape.js";
import { silentLog } from "../support/silent.js";
import { useFolder, useKeys } from "./keyed.js";

const folder = useFolder();
const path = join(folder, "keys.json");
const secret = { BATON_AUTH_SECRET_FILE: join(folder, "pepper") };

/** @returns the new key, which only standard output has */
function create(...args: string[]): { id: string; text: string } {
  const line = [join(root, "dist/gateway/auth/program/main.js"), "create", "--file", path, ...args];
  // No Redis listens there, and none is needed.
  const env = { ...process.env, ...secret, BATON_REDIS_URL: "redis://127.0.0.1:1" };
  const { status, stdout, stderr } = spawnSync(process.execPath, line, { env, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, expect.stringContaining("key_created")]);
  const text = stdout.trim();
  return { id: text.split("_")[1] ?? "", text };
}
const first = create("--tenant", "acme");

const served = useFleet({
  workers: 0,
  models: [],
  direct: true,
  env: { BATON_AUTH: "keys", ...secret, BATON_KEYS_FILE: path, BATON_METRICS_PORT: "0" },
});
const stored = useKeys(served);

const member = (): Member => served.fleet.gateways[0]?.member ?? expect.fail("no gateway");
async function said(text: string): Promise<string> {
  const answer = await fetch(`${served.url}/v2/jobs`, { headers: { "api-key": text } });
  const { code } = (await answer.json()) as { code?: string };
  return code ?? String(answer.status);
}
const page = async () => scrape(await metricsOf(member()));
const recordOf = (id: string): KeyRecord => readKeysFile(path).keys.get(id) ?? expect.fail(`${id} is not in the file`);
const edit = (change: (file: { keys: Record<string, unknown>[] }) => void): void => {
  const file = JSON.parse(readFileSync(path, "utf8")) as { keys: Record<string, unknown>[] };
  change(file);
  writeFileSync(path, JSON.stringify(file));
};
/** Waits until a gateway has refused the file for this fault. */
const refused = (fault: string) =>
  member().process.waitForLine(
    fault,
    ({ fields }) => fields["event"] === "keys_file_refused" && fields["reason"] === fault,
  );

describe("a gateway with a file of keys", () => {
  it("knows its keys, those of Redis, and no others", async () => {
    const { text } = await stored.make();
    expect(await Promise.all([said(first.text), said(text)])).toEqual(["200", "200"]);
    const refusals = async () => (await page()).samples.get('baton_auth_failures_total{reason="malformed"}') ?? 0;
    const before = await refusals();
    expect(await said(first.text.slice(0, -1))).toBe("invalid_api_key");
    expect([await refusals(), (await page()).value("baton_keys_file_ok")]).toEqual([before + 1, 1]);
  });

  it("sees a change within seconds, and keeps the last good file through faults", async () => {
    const second = create("--tenant", "acme", "--scopes", "read");
    await expect.poll(() => said(second.text)).toBe("200");
    const good = readFileSync(path, "utf8");
    writeFileSync(path, '{\n  "keys": [');
    await refused("no JSON: line 2, column 12");
    expect(await Promise.all([said(first.text), said(second.text)])).toEqual(["200", "200"]);
    expect((await page()).value("baton_keys_file_ok")).toBe(0);
    writeFileSync(path, good);
    edit(({ keys }) => Object.assign(keys[1] ?? {}, { expires_at: "2026-01-01T00:00:00Z" }));
    await expect.poll(() => said(second.text)).toBe("expired_api_key");
    edit(({ keys }) => keys.splice(1, 1));
    await expect.poll(() => said(second.text)).toBe("invalid_api_key");
    expect(await said(first.text)).toBe("200");
  });

  it("takes the file's record of a key that is in Redis, too, unless one of them is revoked", async () => {
    const { id, text } = create("--tenant", "acme", "--scopes", "read");
    await expect.poll(() => said(text)).toBe("200");
    const other = JSON.stringify({ ...recordOf(id), scopes: [] });
    await writeKey(stored.redis, { id, tenant: "acme", operatorUntil: undefined }, { from: undefined, to: other });
    expect(await said(text)).toBe("200");
    await stored.keys.revoke(id);
    await expect.poll(() => said(text)).toBe("revoked_api_key");
  });

  it("does not let a tenant go while the file has a key of it", async () => {
    const { text: operator } = await stored.make({ tenant: "default", scopes: ["operator"] });
    const { text } = create("--tenant", "leaving");
    await expect.poll(() => said(text)).toBe("200");
    const at = `${served.url}/v2/tenants/leaving`;
    await writeTenant(stored.redis, "leaving", {
      from: undefined,
      to: JSON.stringify({ id: "leaving", state: "suspended" }),
    });
    await expect.poll(() => said(text)).toBe("tenant_suspended");
    const answer = await fetch(at, { method: "DELETE", headers: { authorization: `Bearer ${operator}` } });
    expect([answer.status, await answer.json()]).toMatchObject([409, { code: "tenant_in_use" }]);
  });

  it("takes a tenant's models from Redis, also if the file names the tenant", async () => {
    const { id } = create("--tenant", "bound");
    const { keys } = JSON.parse(readFileSync(path, "utf8")) as { keys: { id: string }[] };
    const alone = join(folder, "alone.json");
    const records = { version: 1, tenants: [{ id: "bound" }], keys: keys.filter((key) => key.id === id) };
    writeFileSync(alone, JSON.stringify(records), { mode: 0o600 });
    const to = JSON.stringify({ id: "bound", models: ["other-*"] });
    await writeTenant(stored.redis, "bound", { from: undefined, to });
    const beside = { redis: stored.redis, keys: { version: 0 } };
    const audit = new Audit("test", () => undefined);
    const opened = await FileKeys.open({ path: alone, beside, audit, log: silentLog });
    expect(opened.find(id)?.tenant?.models).toEqual(["other-*"]);
  });

  it("does not let a tenant in that Redis says is suspended", async () => {
    const { text } = create("--tenant", "late");
    await expect.poll(() => said(text)).toBe("200");
    await writeTenant(stored.redis, "late", {
      from: undefined,
      to: JSON.stringify({ id: "late", state: "suspended" }),
    });
    await expect.poll(() => said(text)).toBe("tenant_suspended");
  });

  it("does not start with a fault in the file, nor with a key that is in Redis, too", async () => {
    const gateway = member();
    await gateway.terminate();
    gateway.spawn();
    await gateway.process.waitForLine("in both", ({ text }) => /is in BATON_KEYS_FILE and in Redis/.test(text));
    expect(await gateway.process.exited).toMatchObject({ code: 78 });
    edit((file) => void (file.keys = [{ id: "no" }]));
    gateway.spawn();
    await gateway.process.waitForLine("the fault", ({ text }) => text.includes("keys[0].id: "));
    expect(await gateway.process.exited).toMatchObject({ code: 78 });
  });

  it("needs no Redis for its keys if there are no others", async () => {
    edit((file) => void (file.keys = []));
    const { text } = create("--tenant", "acme");
    const gateway = member();
    gateway.reconfigure({ BATON_KEYS_STORE: "file" });
    await gateway.start();
    const inRedis = await stored.make();
    expect(await Promise.all([said(text), said(inRedis.text)])).toEqual(["200", "invalid_api_key"]);
  });
});
