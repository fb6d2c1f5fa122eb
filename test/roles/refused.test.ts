/**
 * Each user of Redis and NATS is refused all that its role does not need, in scripts, too. With a
 * worker's credentials a program reads no secret of a webhook and no key, and hears no stream in
 * NATS, and its forged replies change no answer.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Redis } from "ioredis";
import { Events, type NatsConnection } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownerKeys, registryKeys, replySubject, tokenSubject, webhookKeys } from "#shared/queue/keys.js";
import type { RedisRole } from "#shared/redis/roles.js";
import { simpleBody } from "../jobs/ask.js";
import { connectAs } from "../support/brokers/nats.js";
import { redisUser, urlAs } from "../support/brokers/redis-users.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";

const served = useFleet({
  jobs: 1,
  models: ["simple", "gen-mha"],
  direct: true,
  guarded: true,
  env: { BATON_CAPTURE_TTL_MS: "600000" },
});

const users = new Map<RedisRole, Redis>();
beforeAll(() => {
  for (const role of ["gateway", "worker", "jobs", "operator"] as const) {
    users.set(role, new Redis(urlAs(role, served.fleet.redis.url), { protocol: 2 }));
  }
});
afterAll(async () => {
  // These refusals are the test's own.
  await served.redis.call("ACL", "LOG", "RESET");
  for (const redis of users.values()) redis.disconnect();
});

/** @returns OK, or the word with which Redis refuses the user */
async function tried(role: RedisRole, ...[command = "", ...args]: readonly string[]): Promise<string> {
  try {
    await users.get(role)?.call(command, args);
    return "OK";
  } catch (error) {
    return (
      /NOPERM|can't (?:run this command|access at least one of the keys)/.exec(String(error))?.[0] ?? String(error)
    );
  }
}

const ofPeople = [
  ["FLUSHALL"],
  ["FLUSHDB"],
  ["KEYS", "*"],
  ["CONFIG", "SET", "maxmemory", "1"],
  ["SHUTDOWN"],
  ["MONITOR"],
  ["ACL", "SETUSER", "worker", "allkeys"],
  ["ACL", "LIST"],
  ["SCRIPT", "FLUSH"],
  ["FUNCTION", "FLUSH"],
  ["MIGRATE", "127.0.0.1", "1", "a", "0", "1"],
  ["REPLICAOF", "NO", "ONE"],
  ["SAVE"],
  ["PUBLISH", "a", "b"],
  ["SUBSCRIBE", "a"],
  ["CLIENT", "KILL", "TYPE", "normal"],
  ["XGROUP", "DESTROY", "ready:{0}:simple:1", "workers"],
] as const;

describe("a user of Redis", () => {
  it.each(["gateway", "worker", "jobs", "operator"] as const)("may harm no server: %s", async (role) => {
    for (const [command, ...args] of ofPeople) {
      expect([command, await tried(role, command, ...args)]).toEqual([command, "NOPERM"]);
    }
    if (role !== "operator") expect(await tried(role, "SCAN", "0")).toBe("NOPERM");
    expect(await tried(role, "PING")).toBe("OK");
    // By itself the server refuses this command to all.
    expect(await served.redis.call("ACL", "DRYRUN", role, "DEBUG", "SLEEP", "0")).toContain("no permissions");
  });

  const bull = "{jobs}:deliveries:meta";
  it.each([
    ["worker", webhookKeys.webhooks("default")],
    ["worker", webhookKeys.revisions],
    ["worker", ownerKeys.key("any")],
    ["worker", "{schedules}:due"],
    ["worker", "{batches}:open"],
    ["worker", "{files}:sums"],
    ["worker", "did:{0}:simple:any"],
    ["worker", "calls:any"],
    ["worker", bull],
    ["gateway", bull],
    ["gateway", "runs:{0}:simple:1"],
    ["gateway", "reconciler:{0}:simple:1"],
    ["gateway", "hibernating:{0}:simple"],
    ["gateway", "any"],
    ["jobs", "did:{0}:simple:any"],
    ["jobs", "hibernating:{0}:simple"],
  ] as const)("reads and writes no key that the role does not need: %s, %s", async (role, key) => {
    expect(await tried(role, "GET", key)).toBe("NOPERM");
    expect(await tried(role, "SET", key, "1")).toBe("NOPERM");
    // Not in a script either, whether the call names the key or not.
    expect(await tried(role, "EVAL", "return redis.call('GET', KEYS[1])", "1", key)).toBe("NOPERM");
    const hidden = ["EVAL", "return redis.call('GET', ARGV[1])", "0", key] as const;
    expect(await tried(role, ...hidden)).toBe("can't access at least one of the keys");
  });

  it.each([
    ["gateway", registryKeys.workers],
    ["gateway", registryKeys.version],
    ["gateway", "hibernated:{0}:simple"],
    ["jobs", registryKeys.graves],
    ["jobs", ownerKeys.key("any")],
    ["worker", "wanted:{0}"],
  ] as const)("reads keys that it does not write: %s, %s", async (role, key) => {
    expect(await tried(role, "EXISTS", key)).toBe("OK");
    expect(await tried(role, "EVAL_RO", "return redis.call('EXISTS', KEYS[1])", "1", key)).toBe("OK");
    expect(await tried(role, "EVAL", "return redis.call('EXISTS', KEYS[1])", "1", key)).toBe("NOPERM");
    expect(await tried(role, "DEL", key)).toBe("NOPERM");
  });

  it("may be the operator's, for the program `keys` and to look around", async () => {
    const env = {
      ...process.env,
      ...redisUser("operator", served.fleet.folder),
      BATON_REDIS_URL: served.fleet.redis.url,
      BATON_AUTH_SECRET_FILE: join(served.fleet.folder, "auth.pepper"),
    };
    const keys = (...args: string[]) =>
      spawnSync(process.execPath, [join(root, "dist/gateway/auth/program/main.js"), ...args], {
        env,
        encoding: "utf8",
      });
    keys("pepper", env.BATON_AUTH_SECRET_FILE);
    const made = keys("create", "--tenant", "acme");
    expect([made.status, made.stdout]).toEqual([0, expect.stringMatching(/^bt_\w+\n$/)]);
    const id = made.stdout.split("_")[1] ?? "";
    expect(keys("rotate", id, "--overlap", "1d").status).toBe(0);
    expect(keys("list").stdout).toContain(id);
    expect(keys("revoke", id).status).toBe(0);
    // `on` would end the fleet's gateway, which asks for no keys.
    expect(keys("require", "off").status).toBe(0);
    for (const command of ["SCAN 0", "INFO", "ACL LOG", "SLOWLOG GET", "CLIENT LIST", "XINFO STREAM ready:none"]) {
      expect(await tried("operator", ...command.split(" "))).not.toBe("NOPERM");
    }
  });
});

describe("a user of NATS", () => {
  const open: NatsConnection[] = [];
  afterAll(() => Promise.all(open.map((connection) => connection.close())));

  /** Connects, and collects what the server refuses. */
  async function connected(role: "gateway" | "worker" | "jobs") {
    const connection = await connectAs(served.fleet.nats, role);
    open.push(connection);
    const refused: string[] = [];
    void (async () => {
      for await (const { type, permissionContext: context } of connection.status()) {
        if (type === Events.Error && context !== undefined) refused.push(`${context.operation} ${context.subject}`);
      }
    })();
    return { connection, refused };
  }

  const answers = async (body: object) => {
    const manner = { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(`${served.url}/v2/models/simple/infer`, manner);
    const { outputs } = (await answer.json()) as { outputs?: readonly { data: readonly number[] }[] };
    return [answer.status, outputs?.[0]?.data[0]];
  };

  it("of a worker hears no stream, no reply and no other inbox, and makes no consumer", async () => {
    const { connection, refused } = await connected("worker");
    const asked = await fetch(`${served.url}/v2/models/gen-mha/generate`, {
      method: "POST",
      body: JSON.stringify({ text_input: "a secret", max_tokens: 4 }),
    });
    expect(asked.status).toBe(200);
    const stream = tokenSubject({ bucket: 0, model: "gen-mha", tenant: "default", request: "*" });
    const forbidden = [stream, "baton.v1.>", replySubject("*"), "_INBOX_gateway.>", "_INBOX.>", ">", "$SYS.>"];
    const heard: string[] = [];
    for (const subject of forbidden) {
      connection.subscribe(subject, { callback: (error, { subject }) => void (error ?? heard.push(subject)) });
    }
    const orders = [
      "$JS.API.CONSUMER.CREATE.BATON_TOKENS",
      "$JS.API.CONSUMER.DURABLE.CREATE.BATON_TOKENS.c_mine",
      "$JS.API.CONSUMER.MSG.NEXT.BATON_TOKENS.c_any",
      "$JS.API.DIRECT.GET.BATON_TOKENS",
      "$JS.API.STREAM.DELETE.BATON_TOKENS",
      "$JS.API.STREAM.PURGE.BATON_TOKENS",
      "$JS.API.STREAM.UPDATE.BATON_TOKENS",
      "baton.clients",
    ];
    for (const order of orders) connection.publish(order, "{}");
    await connection.flush();
    const wanted = [
      ...forbidden.map((subject) => `subscription ${subject}`),
      ...orders.map((order) => `publish ${order}`),
    ];
    expect(
      (
        await readUntil(
          async () => refused,
          ({ length }) => length >= wanted.length,
        )
      ).toSorted(),
    ).toEqual(wanted.toSorted());
    expect(heard).toEqual([]);
  });

  it.each(["gateway", "jobs"] as const)("of the process %s publishes no reply, and ends no record", async (role) => {
    const { connection, refused } = await connected(role);
    const orders = ["baton.reply.any", "baton.graves", "$JS.API.STREAM.PURGE.BATON_TOKENS", "$JS.API.STREAM.DELETE.A"];
    for (const order of orders) connection.publish(order, "{}");
    await connection.flush();
    const wanted = orders.map((order) => `publish ${order}`);
    expect(
      await readUntil(
        async () => refused,
        ({ length }) => length >= wanted.length,
      ),
    ).toEqual(wanted);
  });

  it("of a worker changes no answer with a hundred thousand forged replies", async () => {
    const FORGED = 100_000;
    const { connection } = await connected("worker");
    const [gateway] = served.fleet.gateways;
    const lines = () => gateway?.member.process.lines ?? [];
    const name = lines().find(({ fields }) => fields["msg"] === "gateway listening")?.fields["gateway"];
    const subject = replySubject(String(name));
    const wrong: unknown[] = [];
    const over = new AbortController();
    const asking = (async () => {
      for (let i = 0; !over.signal.aborted; i++) {
        const answer = await answers(simpleBody(i % 1_000));
        if (answer[0] !== 200 || answer[1] !== 2 * (i % 1_000)) wrong.push(answer);
      }
    })();
    for (let i = 0; i < FORGED; i++) {
      connection.publish(subject, Buffer.alloc(40 + (i % 200), i % 251));
      if (i % 1_000 === 0) await connection.flush();
    }
    await connection.flush();
    const noted = () =>
      lines()
        .filter(({ fields }) => fields["event"] === "reply_forged")
        .reduce((sum, { fields }) => sum + Number(fields["count"]), 0);
    // NATS delivers at most once. A busy gateway may take a connection for dead whose sign of life
    // comes behind the flood, and the new connection misses some of the flood.
    await expect.poll(noted).toBeGreaterThan(FORGED / 2);
    expect(noted()).toBeLessThanOrEqual(FORGED);
    over.abort();
    await asking;
    expect(wrong).toEqual([]);
    expect(await answers(simpleBody(21))).toEqual([200, 42]);
  });
});
