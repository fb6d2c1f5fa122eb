/** A change of a webhook that a client repeats under its Idempotency-Key is made once. */
import { describe, expect, it } from "vitest";
import { eventsKey, webhookKeys } from "#shared/queue/keys.js";
import { beginDelivery } from "#shared/queue/webhooks/begin-delivery.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { silentLog } from "../support/silent.js";

const served = useFleet({
  gateways: 2,
  workers: 0,
  models: [],
  env: { BATON_TENANT_HEADER: "x-tenant", BATON_WEBHOOK_ALLOW: "", BATON_SECRETS_KEY: "ab".repeat(32) },
  direct: true,
});
const EVENTS = ["sequence.expired"];
const URL_TAKEN = "https://93.184.215.14/hook";
const REPLAYED = "idempotent-replayed";
let count = 0;

interface View {
  readonly id: string;
  readonly secret: string;
  readonly code: string;
  readonly data: readonly View[];
}

/** A tenant of its own, whose calls go to the gateways in turn. */
function newTenant() {
  const tenant = `tenant-${count++}`;
  let calls = 0;
  const call = async (method: string, path: string, key: string | undefined, body?: object) => {
    const headers = { "x-tenant": tenant, ...(key !== undefined && { "idempotency-key": key }) };
    const url = served.fleet.urls[calls++ % 2] ?? "";
    const answer = await fetch(`${url}/v2${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const view = (text === "" ? {} : JSON.parse(text)) as View;
    return { status: answer.status, view, isReplayed: answer.headers.get(REPLAYED) === "true" };
  };
  return { tenant, call };
}

describe("a webhook", () => {
  const terms = { url: URL_TAKEN, events: EVENTS };

  it("is made once under a key, and each answer shows its secret", async () => {
    const { call } = newTenant();
    const first = await call("POST", "/webhooks", "a", terms);
    const again = await call("POST", "/webhooks", "a", terms);
    expect([first.status, first.isReplayed]).toEqual([201, false]);
    expect(again).toEqual({ ...first, isReplayed: true });
    expect(first.view.secret).toMatch(/^whsec_/);
    const other = await call("POST", "/webhooks", "b", terms);
    expect(other.view.id).not.toBe(first.view.id);
    expect((await call("GET", "/webhooks", undefined)).view.data).toHaveLength(2);
    const changed = await call("POST", "/webhooks", "a", { ...terms, url: `${URL_TAKEN}/2` });
    expect(changed).toMatchObject({ status: 422, view: { code: "idempotency_mismatch" } });
    // A removed webhook is not made again.
    expect((await call("DELETE", `/webhooks/${first.view.id}`, undefined)).status).toBe(204);
    expect(await call("POST", "/webhooks", "a", terms)).toEqual({ ...first, isReplayed: true });
    expect((await call("GET", "/webhooks", undefined)).view.data).toHaveLength(1);
  });

  it("is made once of many calls at the same time", async () => {
    const { call } = newTenant();
    const all = await Promise.all(Array.from({ length: 12 }, () => call("POST", "/webhooks", "a", terms)));
    expect(new Set(all.map(({ view }) => `${view.id} ${view.secret}`)).size).toBe(1);
    expect(all.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
    expect((await call("GET", "/webhooks", undefined)).view.data).toHaveLength(1);
  });

  it("that was refused may be asked for again under the key", async () => {
    const { call } = newTenant();
    const refused = await call("POST", "/webhooks", "a", { ...terms, url: "https://127.0.0.1/" });
    expect(refused).toMatchObject({ status: 400, view: { code: "url_not_allowed" } });
    expect((await call("POST", "/webhooks", "a", terms)).status).toBe(201);
    expect((await call("POST", "/webhooks", "\u00e4", terms)).status).toBe(400);
  });

  it("gets one new secret under a key, also after another one", async () => {
    const { call } = newTenant();
    const { id, secret } = (await call("POST", "/webhooks", undefined, terms)).view;
    const path = `/webhooks/${id}/rotate`;
    const first = await call("POST", path, "a", {});
    const again = await call("POST", path, "a", {});
    expect([again.view.secret, again.isReplayed]).toEqual([first.view.secret, true]);
    expect(first.view.secret).not.toBe(secret);
    const stored = () => served.redis.hgetall(webhookKeys.webhooks(tenantOf()));
    const tenantOf = () => `tenant-${count - 1}`;
    const next = await call("POST", path, undefined, {});
    const before = await stored();
    expect((await call("POST", path, "a", {})).view.secret).toBe(first.view.secret);
    expect(next.view.secret).not.toBe(first.view.secret);
    expect(await stored()).toEqual(before);
    expect(await call("POST", path, "a", { overlap: 5 })).toMatchObject({ status: 422 });
    expect((await call("POST", "/webhooks/wh_none/rotate", "c", {})).status).toBe(404);
  });
});

describe("a message", () => {
  it("is sent once more under a key", async () => {
    const { tenant, call } = newTenant();
    const redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(10_000));
    const run = { tenant, message: "msg_one", run: "1-1" };
    const content = { event: "job.completed", job: "", webhook: "wh_1", target: "", body: "{}" };
    await beginDelivery(redis, run, { ttlMs: 600_000, most: 10 }, content);
    redis.disconnect();
    const path = "/deliveries/msg_one/replay";
    const replays = async () => Number(await served.redis.hget(webhookKeys.delivery(tenant, "msg_one"), "replays"));
    const first = await call("POST", path, "a");
    const again = await call("POST", path, "a");
    expect([first.status, again.status, again.isReplayed]).toEqual([202, 202, true]);
    expect(await replays()).toBe(1);
    expect((await call("POST", path, "b")).isReplayed).toBe(false);
    expect(await replays()).toBe(2);
    expect((await call("POST", "/deliveries/msg_two/replay", "a")).status).toBe(422);
    // A gateway that dies before it notes the change makes the repeated call ask once more: for the
    // same run, so that the jobs processes send one message.
    for (const place of await served.redis.keys("{hooks}:change:*")) {
      await served.redis.set(place, ((await served.redis.get(place)) ?? "").replace('"isMade":true', '"isMade":false'));
    }
    expect((await call("POST", path, "b")).isReplayed).toBe(true);
    const asked = (await served.redis.xrange(eventsKey(0), "-", "+"))
      .filter(([, [, of]]) => of === tenant)
      .map(([, [, , , , , facts = ""]]) => (JSON.parse(facts) as { readonly run: string }).run);
    expect([asked.length, new Set(asked).size, asked[2]]).toEqual([3, 2, asked[1]]);
    expect(await replays()).toBe(2);
  });
});
