/**
 * The paths of webhooks and deliveries: the bodies that they accept, refuse and show, and the
 * tenant that sees them.
 */
import { describe, expect, it } from "vitest";
import { beginDelivery } from "#shared/queue/webhooks/begin-delivery.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { WebhookClient, type WebhookView } from "../support/jobs/webhooks.js";
import { silentLog } from "../support/silent.js";
import { TENANT_HEADER } from "../edition/sequences/ask.js";

const served = useFleet({
  workers: 0,
  models: [],
  env: { BATON_TENANT_HEADER: TENANT_HEADER, BATON_WEBHOOK_ALLOW: "" },
  direct: true,
});
let count = 0;
const newClient = () => new WebhookClient(served.url, { [TENANT_HEADER]: `tenant-${count++}` });
const EVENTS = ["sequence.expired"];
/** More than two pages read. */
const MANY = 2_100;
/** An address, which needs no look-up of a name. */
const URL_TAKEN = "https://93.184.215.14/hook";

interface Refusal {
  readonly code: string;
  readonly error: string;
}
interface Page {
  readonly object: string;
  readonly data: readonly WebhookView[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

describe("/v2/webhooks", () => {
  it("makes one, shows its secret once, changes it and removes it", async () => {
    const client = newClient();
    const made = await client.ask<WebhookView>("POST", "/webhooks", { url: URL_TAKEN, events: EVENTS });
    expect(made.status).toBe(201);
    const { secret, ...shown } = made.body;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(shown).toEqual({
      id: expect.stringMatching(/^wh_[\w-]{22}$/),
      object: "webhook",
      url: URL_TAKEN,
      events: EVENTS,
      enabled: true,
      created_at: expect.any(String),
    });
    const path = `/webhooks/${shown.id}`;
    expect((await client.ask("GET", path)).body).toEqual(shown);
    const changed = await client.ask("PATCH", path, { enabled: false, url: `${URL_TAKEN}/2` });
    expect(changed.body).toEqual({ ...shown, enabled: false, url: `${URL_TAKEN}/2` });
    expect((await client.ask("GET", path)).body).toEqual(changed.body);
    expect((await client.ask("DELETE", path)).status).toBe(204);
    expect(await client.ask("GET", path)).toMatchObject({ status: 404, body: { code: "unknown_webhook" } });
    expect(await client.ask("DELETE", path)).toMatchObject({ status: 404, body: { code: "unknown_webhook" } });
  });

  it("takes a secret that a client has chosen, and refuses a weak one without repeating it", async () => {
    const client = newClient();
    const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`;
    const made = await client.ask<WebhookView>("POST", "/webhooks", { url: URL_TAKEN, events: EVENTS, secret });
    expect(made.body.secret).toBe(secret);
    const weak = await client.ask<Refusal>("POST", "/webhooks", { url: URL_TAKEN, events: EVENTS, secret: "hunter2" });
    expect([weak.status, weak.body.code]).toEqual([400, "invalid_argument"]);
    expect(weak.text).not.toContain("hunter2");
  });

  it.each([
    "http://127.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://①②⑦.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[::7f00:1]/",
    "https://localhost./",
    "https://169.254.169.254/",
    "https://user:password@example.com/",
    "ftp://example.com/",
    "https://93.184.215.14:22/",
    "https://93.184.215.14:6379/",
    "https://93.184.215.14:4222/",
    "http://93.184.215.14/",
    "no url",
  ])("refuses %s (A61)", async (url) => {
    const client = newClient();
    const made = await client.ask<Refusal>("POST", "/webhooks", { url, events: EVENTS });
    expect([made.status, made.body.code]).toEqual([400, "url_not_allowed"]);
    const { body } = await client.ask<WebhookView>("POST", "/webhooks", { url: URL_TAKEN, events: EVENTS });
    const changed = await client.ask<Refusal>("PATCH", `/webhooks/${body.id}`, { url });
    expect([changed.status, changed.body.code]).toEqual([400, "url_not_allowed"]);
    expect((await client.show(body.id)).url).toBe(URL_TAKEN);
  });

  it.each([
    [{}, "events"],
    [{ events: EVENTS }, "url"],
    [{ url: URL_TAKEN, events: [] }, "at least one"],
    [{ url: URL_TAKEN, events: ["job.exploded"] }, "job.exploded"],
    [{ url: URL_TAKEN, events: "sequence.expired" }, "events"],
    [{ url: 5, events: EVENTS }, "url"],
    [{ url: URL_TAKEN, events: EVENTS, enabled: false }, "enabled"],
  ])("refuses %j, and says why", async (body, why) => {
    const made = await newClient().ask<Refusal>("POST", "/webhooks", body);
    expect([made.status, made.body.code]).toEqual([400, "invalid_argument"]);
    expect(made.body.error).toContain(why);
  });

  it("lists a tenant's own, the newest first, page by page, and no more than it may have", async () => {
    const client = newClient();
    const ids: string[] = [];
    for (let i = 0; i < 100; i++) ids.unshift((await client.register(URL_TAKEN)).id);
    const full = await client.ask<Refusal>("POST", "/webhooks", { url: URL_TAKEN, events: EVENTS });
    expect([full.status, full.body.code]).toEqual([429, "webhook_limit"]);
    const seen: string[] = [];
    let after = "";
    for (let more = true; more;) {
      const { body } = await client.ask<Page>("GET", `/webhooks?limit=30${after}`);
      seen.push(...body.data.map(({ id }) => id));
      expect([body.object, body.first_id, body.last_id]).toEqual(["list", body.data[0]?.id, body.data.at(-1)?.id]);
      after = `&after=${body.last_id}`;
      more = body.has_more;
    }
    expect([...seen].sort()).toEqual([...ids].sort());
    expect((await newClient().ask<Page>("GET", "/webhooks")).body).toEqual({
      object: "list",
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
  });

  it("shows no tenant what is another's", async () => {
    const { id } = await newClient().register(URL_TAKEN);
    const other = newClient();
    const asked = await Promise.all([
      other.ask("GET", `/webhooks/${id}`),
      other.ask("PATCH", `/webhooks/${id}`, { enabled: false }),
      other.ask("DELETE", `/webhooks/${id}`),
      other.ask("POST", `/webhooks/${id}/rotate`),
    ]);
    for (const one of asked) expect(one).toMatchObject({ status: 404, body: { code: "unknown_webhook" } });
  });

  it("refuses a rotation that overlaps for too long, and what no path has", async () => {
    const client = newClient();
    const { id } = await client.register(URL_TAKEN);
    for (const overlap of [-1, 1.5, "1", 31 * 86_400_000]) {
      expect((await client.ask("POST", `/webhooks/${id}/rotate`, { overlap })).status).toBe(400);
    }
    expect((await client.ask("PUT", `/webhooks/${id}`)).status).toBe(405);
    expect((await client.ask("GET", "/webhooks?page=2")).status).toBe(400);
    expect((await client.ask("GET", "/webhooks?limit=101")).status).toBe(400);
    expect((await client.ask("GET", "/webhooks?after=wh_none")).status).toBe(400);
  });
});

describe("/v2/deliveries", () => {
  it("refuses what it does not know", async () => {
    const client = newClient();
    expect((await client.ask<Page>("GET", "/deliveries")).body.data).toEqual([]);
    expect((await client.ask("GET", "/deliveries?state=lost")).status).toBe(400);
    expect((await client.ask("GET", "/deliveries?after=msg_none")).status).toBe(400);
    const replay = await client.ask("POST", "/deliveries/msg_none/replay");
    expect(replay).toMatchObject({ status: 404, body: { code: "unknown_delivery" } });
  });

  it("looks at a bounded number for each page, and goes on behind the last that it has looked at", async () => {
    const tenant = `tenant-${count}`;
    const client = newClient();
    const redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
    const kept = { ttlMs: 600_000, most: 10_000 };
    const content = { event: "job.completed", job: "", webhook: "wh_1", target: "", body: "{}" };
    const begin = (i: number, webhook: string) =>
      beginDelivery(redis, { tenant, message: `msg_${i}`, run: "1-0" }, kept, { ...content, webhook });
    // Only the oldest delivery has the wanted webhook. The other deliveries come all at once,
    // because Redis syncs its file for each read of its input, not for each command.
    await begin(0, "wh_rare");
    await Promise.all(Array.from({ length: MANY - 1 }, (_, i) => begin(i + 1, "wh_1")));
    const found: string[] = [];
    let pages = 0;
    for (let after = "", more = true; more; pages++) {
      const { status, body } = await client.ask<Page>("GET", `/deliveries?webhook=wh_rare${after}`);
      expect(status).toBe(200);
      found.push(...body.data.map(({ id }) => id));
      more = body.has_more;
      after = `&after=${body.last_id}`;
    }
    expect({ found, pages }).toEqual({ found: ["msg_0"], pages: 3 });
    const all = await client.ask<Page>("GET", "/deliveries?limit=100");
    expect([all.body.data.length, all.body.has_more]).toEqual([100, true]);
    expect(all.body.last_id).toBe(all.body.data.at(-1)?.id);
    redis.disconnect();
  });
});
