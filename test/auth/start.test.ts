/** The first start: a laptop needs no key, and any other place lets no client in without one. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newKey } from "../../gateway/auth/key.js";
import { refusalsOf } from "../support/brokers/redis-users.js";
import type { RunningProcess } from "../support/brokers/process.js";
import { makeRepository } from "../support/fleet/repository.js";
import { root } from "../support/fleet/root.js";
import { bannerOf, npmStart, textOf } from "../support/fleet/npm-start.js";

describe("`npm start`", () => {
  let folder = "";
  let start: Awaited<ReturnType<typeof npmStart>> | undefined;
  let taken: Server | undefined;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "baton-first-"))));
  afterEach(async () => {
    if (start?.alive === true) await start.terminate();
    taken?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function started(env: Readonly<Record<string, string>>): Promise<RunningProcess> {
    return (start = await npmStart(folder, makeRepository(join(folder, "models"), ["simple"]), env));
  }
  /** Runs `npm run keys` as a user does in another terminal, who sets nothing but the folder. */
  const keys = (...args: string[]) => {
    const env = { ...process.env, BATON_HOME: join(folder, "home") };
    return spawnSync(process.execPath, [join(root, "infra/keys.mjs"), ...args], { env, encoding: "utf8" });
  };
  const statusWith = async (key?: string): Promise<number> => {
    // `spawnSync` keeps this process from seeing that the gateway has closed an idle connection.
    const headers = { connection: "close", ...(key !== undefined && { "api-key": key }) };
    return (await fetch(`${start?.url}/v2/models/simple`, { headers })).status;
  };

  it("asks for nothing on loopback, and says how to ask for keys", async () => {
    // What .env may say for Docker Compose is not about this gateway, and an empty setting is none.
    const said = await bannerOf(await started({ BATON_PUBLISH: "0.0.0.0", BATON_AUTH: "" }));
    expect(said).toMatch(/^ {2}keys .*BATON_AUTH=keys npm start/m);
    expect(await statusWith()).toBe(200);
    // Each process has its own user of Redis and of NATS, and no other client gets in.
    const secrets = join(folder, "home/secrets");
    const roles = ["gateway", "jobs", "operator", "worker"];
    const files = [
      ...roles.flatMap((role) => [`redis-${role}.pass`, `nats/${role}.creds`]),
      "users.acl",
      "readers.seed",
      "metrics.token",
    ];
    for (const name of files) expect([name, statSync(join(secrets, name)).mode & 0o777]).toEqual([name, 0o600]);
    expect(statSync(secrets).mode & 0o777).toBe(0o700);
    const url = readFileSync(join(secrets, "redis.url"), "utf8").trim();
    const [operator, stranger] = [url, url.replace(/operator:.*@/, "")].map((one) => new Redis(one, { protocol: 2 }));
    stranger?.on("error", () => undefined);
    try {
      await expect(stranger?.ping()).rejects.toThrow("NOAUTH");
      expect(await refusalsOf(operator ?? expect.fail("there are two"))).toEqual([]);
      const users = Array.from(
        String(await operator?.client("LIST")).matchAll(/ user=(\w+)/g),
        ([, user = ""]) => user,
      );
      expect([...new Set(users)].sort()).toEqual(roles);
    } finally {
      operator?.disconnect();
      stranger?.disconnect();
    }
    expect(said).not.toContain("may do everything");
  }, 150_000);

  it("does not start for other machines without keys", async () => {
    const process = await started({ BATON_HOST: "0.0.0.0", BATON_PUBLISH: "127.0.0.1" });
    expect((await process.exited).code).toBe(78);
    expect(textOf(process)).toContain(
      "BATON_AUTH is not set and BATON_HOST is 0.0.0.0: anybody who reaches this port could use the fleet.",
    );
  }, 150_000);

  it("makes the operator's key once, and `npm run keys` finds the Redis that it has chosen", async () => {
    // The usual port is taken, by this test or by another.
    taken = createServer()
      .on("error", () => undefined)
      .listen(16_379, "127.0.0.1");
    const keyed = { BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: "", BATON_REDIS_PORT: "" };
    const said = await bannerOf(await started(keyed));
    const secrets = join(folder, "home/secrets");
    const file = join(secrets, "operator.key");
    const operator = readFileSync(file, "utf8").trim();
    expect(said).toContain(file);
    expect(said).not.toContain(operator);
    for (const name of ["auth.pepper", "operator.key", "redis.url"])
      expect(statSync(join(secrets, name)).mode & 0o777).toBe(0o600);
    expect([await statusWith(), await statusWith(operator)]).toEqual([401, 200]);

    const made = keys("create", "--tenant", "acme");
    expect(made.stdout).toMatch(/^bt_\w+\n$/);
    expect(await statusWith(made.stdout.trim())).toBe(200);
    expect(keys("first").stdout).toBe(`${operator}\n`);

    const known = JSON.parse(keys("list", "--json").stdout) as { data: { name: string }[] };
    expect(known.data.filter(({ name }) => name === "operator")).toHaveLength(1);
    // A key that Redis does not know, as after a loss of its data, makes way for another.
    writeFileSync(file, `${newKey().text}\n`);
    const another = keys("first").stdout.trim();
    expect([readFileSync(file, "utf8").trim(), await statusWith(another)]).toEqual([another, 200]);
    // A revoked key does not.
    keys("revoke", another.split("_")[1] ?? "");
    const refused = keys("first");
    expect([refused.status, refused.stdout]).toEqual([78, ""]);
    expect(refused.stderr).toContain(
      "is revoked: put another operator's key into the file, or remove it to have a new one made.",
    );
    writeFileSync(file, "no key\n");
    expect(keys("first").stderr).toContain("holds no key");
  }, 240_000);
});
