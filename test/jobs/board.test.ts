/** Operators reach Bull Board on its own port, and never without the token. */
import { get } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/brokers/port.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { noteExpiries, Receiver, WebhookClient } from "../support/jobs/webhooks.js";

const TOKEN = "a-token-of-operators-1";
const port = await freePort();
const served = useFleet({
  workers: 0,
  jobs: 1,
  models: [],
  // A job that fails once waits for an hour, unless an operator starts the attempt.
  jobsEnv: {
    BATON_JOBS_ADMIN_PORT: String(port),
    BATON_ADMIN_TOKEN: TOKEN,
    BATON_WEBHOOK_RETRY_MS: "3600000",
  },
  direct: true,
});

const basic = (password: string) => ({ authorization: `Basic ${btoa(`operator:${password}`)}` });

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(path: string, { method = "GET", headers = basic(TOKEN) }: Asked = {}) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: { ...headers } });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** The status of a request under this host name, which fetch cannot set. */
function statusUnder(host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { ...basic(TOKEN), host };
    get({ port, path: "/api/queues", headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).once("error", reject);
  });
}

describe("Bull Board", () => {
  it("is a page with its scripts, for who has the token", async () => {
    const page = await ask("/");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    const [, script] = /src="(static\/js\/main[^"]*)"/.exec(page.text) ?? [];
    expect(await ask(`/${script}`)).toMatchObject({ status: 200 });
  });

  it("shows all queues by name", async () => {
    const { status, text } = await ask("/api/queues");
    expect(status).toBe(200);
    const { queues } = JSON.parse(text) as { queues: { name: string }[] };
    expect(queues.map(({ name }) => name)).toContain("deliveries");
  });

  it("is refused without the token, whatever is asked for", async () => {
    for (const path of ["/", "/api/queues", "/static/favicon-32x32.png", "/nowhere"]) {
      for (const headers of [{}, basic("wrong"), basic(`${TOKEN}x`), basic(""), { authorization: `Bearer ${TOKEN}` }]) {
        const answer = await ask(path, { headers });
        expect(answer.status).toBe(401);
        expect(answer.headers.get("www-authenticate")).toMatch(/^Basic realm=/);
      }
    }
  });

  it("is refused to pages of other origins, and under names that anybody may register", async () => {
    const foreign = { ...basic(TOKEN), origin: "https://evil.example" };
    const pause = "/api/queues/deliveries/pause";
    expect(await ask(pause, { method: "PUT", headers: foreign })).toMatchObject({ status: 403 });
    const near = { ...basic(TOKEN), origin: "http://localhost:3000" };
    expect(await ask(pause, { method: "PUT", headers: near })).toMatchObject({ status: 403 });
    expect(await statusUnder("evil.example")).toBe(403);
    expect(await statusUnder("localhost")).toBe(200);
  });

  it("adds, changes and removes nothing", async () => {
    const queue = "/api/queues/deliveries";
    for (const [method, path] of [
      ["POST", `${queue}/add`],
      ["PUT", `${queue}/empty`],
      ["PUT", `${queue}/obliterate`],
      ["PUT", `${queue}/clean/delayed`],
      ["PUT", `${queue}/1/clean`],
      ["PATCH", `${queue}/1/update-data`],
      ["PUT", `${queue}/concurrency`],
    ] as const) {
      expect([path, (await ask(path, { method })).status]).toEqual([path, 403]);
    }
  });
});

describe("an operator", () => {
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await Receiver.start();
  });
  afterAll(() => receiver.dispose());

  it("has a delivery attempted now that waits for its next attempt, and sees neither body nor secret", async () => {
    const client = new WebhookClient(served.url);
    let status = 500;
    const url = receiver.on("/later", () => status);
    const { id, secret } = await client.register(url);
    const { redis } = served;
    await noteExpiries(redis, "default", 1);
    const delayed = async () => {
      const { text } = await ask("/api/queues?activeQueue=deliveries&status=delayed");
      const { queues } = JSON.parse(text) as { queues: { name: string; jobs: { id: string }[] }[] };
      return { text, ids: queues.find(({ name }) => name === "deliveries")?.jobs.map((job) => job.id) ?? [] };
    };
    await expect.poll(async () => (await delayed()).ids.length).toBe(1);
    const { text, ids } = await delayed();
    expect(text).not.toContain(secret.slice("whsec_".length));
    expect(text).not.toContain("sequence_id");
    status = 204;
    const promoted = await ask(`/api/queues/deliveries/${encodeURIComponent(ids[0] ?? "")}/promote`, { method: "PUT" });
    expect(promoted.status).toBeLessThan(300);
    await expect.poll(async () => (await client.deliveries(`?webhook=${id}`))[0]?.state).toBe("delivered");
    expect(receiver.at("/later")).toHaveLength(2);
  });
});
