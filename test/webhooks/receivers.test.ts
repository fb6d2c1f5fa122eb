/**
 * Receivers that fail in every way: a jobs process tries each again on schedule, and no receiver
 * delays another.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { webhookKeys } from "#shared/queue/keys.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { noteExpiries, Receiver, verified, WebhookClient } from "../support/jobs/webhooks.js";
import { TENANT_HEADER } from "../edition/sequences/ask.js";

const TRIES = 3;
const SECRETS_KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const LIMIT = 64 * 1024;

const served = useFleet({
  workers: 0,
  jobs: 1,
  models: [],
  env: { BATON_TENANT_HEADER: TENANT_HEADER, BATON_SECRETS_KEY: SECRETS_KEY },
  jobsEnv: { BATON_WEBHOOK_RETRY_MS: "100,200", BATON_WEBHOOK_TIMEOUT_MS: "1200", BATON_LOG_LEVEL: "debug" },
  direct: true,
});

describe("a receiver (F33)", () => {
  let receiver: Receiver;
  let count = 0;
  let tenant = "";
  beforeAll(async () => {
    receiver = await Receiver.start();
  });
  afterAll(async () => {
    await receiver.dispose();
  });
  /** A client for a new tenant. */
  const newClient = () => {
    tenant = `tenant-${count++}`;
    return new WebhookClient(served.url, { [TENANT_HEADER]: tenant });
  };
  /** @returns the only delivery of the tenant, after its end */
  const ended = async (client: WebhookClient) => {
    await expect.poll(async () => (await client.deliveries()).map(({ state }) => state)).not.toContain("pending");
    const [delivery, ...more] = await client.deliveries();
    expect(more).toEqual([]);
    if (delivery === undefined) throw new Error("nothing was delivered");
    return delivery;
  };
  const deliverTo = async (url: string) => {
    const client = newClient();
    const { id, secret } = await client.register(url);
    await noteExpiries(served.redis, tenant);
    await expect.poll(async () => (await client.deliveries()).length).toBe(1);
    return { client, id, secret, delivery: await ended(client) };
  };
  const errorsOf = ({ attempts }: { readonly attempts: readonly { readonly error: string | null }[] }) =>
    attempts.map(({ error }) => error);
  const thrice = (error: string) => Array.from({ length: TRIES }, () => error);

  it("answers 500 twice: it gets the same message again, signed anew (A65)", async () => {
    let left = 2;
    const url = receiver.on("/500", () => (left-- > 0 ? 500 : 200));
    const { delivery, secret } = await deliverTo(url);
    expect(delivery).toMatchObject({ state: "delivered", next_attempt_at: null });
    expect(errorsOf(delivery)).toEqual(["http_500", "http_500", null]);
    const received = receiver.at("/500");
    expect(new Set(received.map(({ id, body }) => `${id} ${body}`)).size).toBe(1);
    expect(received[0]?.id).toBe(delivery.id);
    for (const one of received) expect(verified(one, secret).type).toBe("sequence.expired");
    const [first] = received;
    if (first === undefined) throw new Error("nothing came");
    expect(() => verified({ ...first, body: first.body.replace("chain", "other") }, secret)).toThrow();
    const stale = String(Number(first.headers["webhook-timestamp"]) - 600);
    expect(() => verified({ ...first, headers: { ...first.headers, "webhook-timestamp": stale } }, secret)).toThrow();
  });

  it("redirects inside: that is not followed (A63)", async () => {
    const inside = receiver.url("/inside");
    const url = receiver.on("/301", (_, response) => {
      response.writeHead(301, { location: inside }).end();
      return undefined;
    });
    const { delivery } = await deliverTo(url);
    expect(delivery.state).toBe("failed");
    expect(errorsOf(delivery)).toEqual(thrice("redirect_not_followed"));
    expect(receiver.at("/inside")).toEqual([]);
  });

  it("says that it is gone: its webhook is disabled", async () => {
    const { client, id, delivery } = await deliverTo(receiver.on("/410", () => 410));
    expect(delivery.state).toBe("failed");
    expect(errorsOf(delivery)).toEqual(["http_410"]);
    expect(await client.show(id)).toMatchObject({ enabled: false, disabled_reason: "gone" });
    const enabled = await client.ask("PATCH", `/webhooks/${id}`, { enabled: true });
    expect(enabled.body).not.toHaveProperty("disabled_reason");
  });

  it("never answers, sends its answer's head byte by byte, or resets the connection", async () => {
    const hanging = receiver.on("/hang", () => undefined);
    const slow = receiver.on("/slow", (_, __, socket) => {
      socket.write("HTTP/1.1 200 OK\r\nx-slow: ");
      const timer = setInterval(() => socket.write("a"), 1_000);
      socket.on("close", () => clearInterval(timer));
      socket.on("error", () => undefined);
      return undefined;
    });
    const resetting = receiver.on("/reset", (_, __, socket) => {
      socket.resetAndDestroy();
      return undefined;
    });
    const ends = await Promise.all(
      [hanging, slow, resetting].map(async (url, i) => {
        const name = `failing-${i}`;
        const client = new WebhookClient(served.url, { [TENANT_HEADER]: name });
        await client.register(url);
        await noteExpiries(served.redis, name);
        await expect.poll(async () => (await client.deliveries()).length).toBe(1);
        return ended(client);
      }),
    );
    expect(ends.map(({ state }) => state)).toEqual(["failed", "failed", "failed"]);
    const [hung, dripped, reset] = ends.map(errorsOf);
    expect(hung).toEqual(thrice("timeout"));
    expect(dripped).toEqual(thrice("timeout"));
    expect(reset).toEqual(thrice("connection_lost"));
  });

  it("answers 200 without end, or what would be large if it were inflated: little of it is read (A64)", async () => {
    let sent = 0;
    let cut = 0;
    const endless = receiver.on("/endless", (_, response, socket) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      const piece = Buffer.alloc(16 * 1024);
      const more = () => {
        while (!response.destroyed && response.write(piece)) sent += piece.length;
      };
      response.on("drain", more);
      socket.on("close", () => cut++);
      more();
      return undefined;
    });
    const { delivery } = await deliverTo(endless);
    expect(delivery.state).toBe("delivered");
    expect(errorsOf(delivery)).toEqual([null]);
    await expect.poll(() => cut).toBe(1);
    // The bytes read, and the buffers of both kernels.
    expect(sent).toBeLessThan(LIMIT + 16 * 1024 * 1024);
  });

  it("hangs, with many messages waiting: others of the same tenant get theirs meanwhile", async () => {
    const MESSAGES = 16;
    const client = newClient();
    const hanging = await client.register(receiver.url("/hang"));
    const prompt = await client.register(receiver.url("/prompt"));
    await noteExpiries(served.redis, tenant, MESSAGES);
    await expect.poll(() => new Set(receiver.at("/prompt").map(({ id }) => id)).size).toBe(MESSAGES);
    const pending = await client.deliveries(`?webhook=${hanging.id}&state=pending&limit=100`);
    expect(pending.length).toBeGreaterThan(MESSAGES / 2);
    await client.ask("DELETE", `/webhooks/${hanging.id}`);
    const state = async () => (await client.deliveries(`?webhook=${prompt.id}&limit=100`)).map((one) => one.state);
    await expect.poll(state).toEqual(Array.from({ length: MESSAGES }, () => "delivered"));
    await expect.poll(() => client.deliveries(`?webhook=${hanging.id}&state=pending`)).toEqual([]);
  });

  it("can be sent a message once more, delivered or not, and verifies by each secret of a rotation (A65)", async () => {
    let isBroken = true;
    const url = receiver.on("/replayed", () => (isBroken ? 400 : 204));
    const { client, id, secret, delivery } = await deliverTo(url);
    expect(delivery.state).toBe("failed");
    isBroken = false;
    const rotated = await client.ask<{ secret: string }>("POST", `/webhooks/${id}/rotate`, { overlap: 60_000 });
    expect(rotated.body.secret).not.toBe(secret);
    const replay = async () => {
      const before = receiver.at("/replayed").length;
      const asked = await client.ask<object>("POST", `/deliveries/${delivery.id}/replay`);
      expect([asked.status, asked.body]).toMatchObject([202, { id: delivery.id, state: "pending" }]);
      await expect.poll(() => receiver.at("/replayed").length).toBe(before + 1);
      const received = receiver.at("/replayed").at(-1);
      if (received === undefined) throw new Error("nothing came");
      expect(received).toMatchObject({ id: delivery.id, body: receiver.at("/replayed")[0]?.body });
      return received;
    };
    const twice = await replay();
    expect(twice.headers["webhook-signature"]?.split(" ")).toHaveLength(2);
    verified(twice, secret);
    verified(twice, rotated.body.secret);
    const first = twice.headers["webhook-signature"]?.split(" ")[0] ?? "";
    verified({ ...twice, headers: { ...twice.headers, "webhook-signature": first } }, rotated.body.secret);
    await expect.poll(async () => (await ended(client)).state).toBe("delivered");
    const last = await client.ask<{ secret: string }>("POST", `/webhooks/${id}/rotate`);
    const once = await replay();
    verified(once, last.body.secret);
    expect(() => verified(once, rotated.body.secret)).toThrow();
    await expect.poll(async () => (await ended(client)).attempts.length).toBe(TRIES + 2);
  });

  it("is sent a message again and again: what is replaced does not stay in the queue", async () => {
    const url = receiver.on("/later", (_, response) => {
      response.writeHead(503, { "retry-after": "86400" }).end();
      return undefined;
    });
    const client = newClient();
    await client.register(url);
    await noteExpiries(served.redis, tenant);
    await expect.poll(async () => (await client.deliveries())[0]?.attempts.length).toBe(1);
    const [delivery] = await client.deliveries();
    const message = delivery?.id ?? "";
    for (let i = 2; i <= 4; i++) {
      await client.ask("POST", `/deliveries/${message}/replay`);
      await expect.poll(async () => (await client.deliveries())[0]?.attempts.length).toBe(i);
    }
    const runs = async () =>
      (await served.redis.keys("{jobs}:deliveries:msg_*")).filter((key) => key.includes(message));
    await expect.poll(async () => (await runs()).length).toBe(1);
    // A minute may end meanwhile.
    const statuses: number[] = [];
    for (let i = 0; i < 21 && statuses.at(-1) !== 429; i++) {
      const { status, body } = await client.ask<{ code?: string }>("POST", `/deliveries/${message}/replay`);
      expect(body.code).toBe(status === 429 ? "replay_limit" : undefined);
      statuses.push(status);
    }
    expect(statuses.at(-1)).toBe(429);
  });

  it("gets what BullMQ has lost all the same", { timeout: 60_000 }, async () => {
    let isDown = true;
    const url = receiver.on("/lost", (_, response) => {
      if (!isDown) return 204;
      response.writeHead(503, { "retry-after": "3600" }).end();
      return undefined;
    });
    const client = newClient();
    await client.register(url);
    await noteExpiries(served.redis, tenant);
    await expect.poll(async () => (await client.deliveries())[0]?.attempts.length).toBe(1);
    const message = (await client.deliveries())[0]?.id ?? "";
    isDown = false;
    // As after a failover of the master with BullMQ's keys, an hour later.
    const lost = (await served.redis.keys("{jobs}:deliveries:msg_*")).filter((key) => key.includes(message));
    expect(lost).toHaveLength(1);
    for (const key of lost) {
      await served.redis.del(key);
      await served.redis.zrem("{jobs}:deliveries:delayed", key.slice("{jobs}:deliveries:".length));
    }
    await served.redis.zadd(webhookKeys.pending, 1, `${tenant}:${message}`);
    await expect.poll(async () => (await client.deliveries())[0]?.state, { timeout: 40_000 }).toBe("delivered");
    expect(receiver.at("/lost")).toHaveLength(2);
  });

  it("has a webhook that cannot be read: its run goes on trying, and does not grow", async () => {
    const url = receiver.on("/unread", (_, response) => {
      response.writeHead(503, { "retry-after": "86400" }).end();
      return undefined;
    });
    const client = newClient();
    const { id } = await client.register(url);
    await noteExpiries(served.redis, tenant);
    await expect.poll(async () => (await client.deliveries())[0]?.attempts.length).toBe(1);
    const message = (await client.deliveries())[0]?.id ?? "";
    const kept = (await served.redis.hget(webhookKeys.webhooks(tenant), id)) ?? "";
    await served.redis.hset(webhookKeys.webhooks(tenant), id, JSON.stringify({ of: "another version" }));
    await client.ask("POST", `/deliveries/${message}/replay`);
    const job = async () => {
      const keys = await served.redis.keys("{jobs}:deliveries:msg_*");
      return served.redis.hgetall(keys.find((key) => key.includes(message)) ?? "");
    };
    await expect.poll(async () => Number((await job())["atm"] ?? 0)).toBeGreaterThan(2);
    const traces = JSON.parse((await job())["stacktrace"] ?? "[]") as unknown[];
    expect(traces).toHaveLength(1);
    await served.redis.hset(webhookKeys.webhooks(tenant), id, kept);
    await expect.poll(async () => (await client.deliveries())[0]?.attempts.length).toBe(2);
  });

  it("has a secret that nobody reads a second time: not by the paths, in Redis or in a log (A66)", async () => {
    const { client, id, secret } = await deliverTo(receiver.url("/secret"));
    const paths = [`/webhooks/${id}`, "/webhooks", "/deliveries"];
    const shown = await Promise.all(paths.map(async (path) => (await client.ask("GET", path)).text));
    shown.push((await client.ask("PATCH", `/webhooks/${id}`, { enabled: false })).text);
    for (const text of shown) expect(text).not.toMatch(/whsec_|sealed:/);
    const bare = secret.slice("whsec_".length);
    const kept: string[] = [];
    for (const key of await served.redis.keys("*"))
      kept.push((await served.redis.dumpBuffer(key))?.toString("latin1") ?? "");
    expect(kept.some((dump) => dump.includes(id))).toBe(true);
    expect(kept.filter((dump) => dump.includes(bare))).toEqual([]);
    const lines = [...served.fleet.jobs, ...served.fleet.gateways.map(({ member }) => member)].flatMap(
      ({ process }) => process.lines,
    );
    expect(lines.filter(({ text }) => text.includes(bare))).toEqual([]);
  });
});
