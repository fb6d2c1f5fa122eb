/**
 * Files during failures: a gateway killed in the middle of an upload, a NATS that is gone or has no
 * room, a client that reads nothing, and objects that expire.
 */
import { get } from "node:http";
import { describe, expect, it } from "vitest";
import { within } from "#shared/retry.js";
import { resourcesOf } from "../../support/brokers/resources.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil, until } from "../../support/until.js";
import { messagesIn, objectsIn } from "../../files/objects.js";
import { beginUpload, FORM_END, FORM_TYPE, formOf, partHead, upload } from "../../files/upload.js";

const MIB = 1024 * 1024;
const full = process.env["BATON_FULL"] === "1";
/** The size of a large file, in MiB. */
const LARGE = full ? 1_000 : 64;
/** The growth of a gateway while a file of any size comes or goes. */
const GROWTH_BYTES = 160 * MIB;

const served = useFleet({ gateways: 2, workers: 0, jobs: 1, models: [], direct: true });

const small = formOf([
  { field: "purpose", text: "batch" },
  { field: "file", name: "a.jsonl", text: "{}\n" },
]);
const idOf = ({ body }: { readonly body: unknown }) => (body as { readonly id: string }).id;
/** Makes every file due for upkeep at once. */
const makeAllDue = async () => {
  for (const member of await served.redis.zrange("{files}:due", "0", "-1"))
    await served.redis.zadd("{files}:due", "1", member);
};

async function rssOf(pid: number): Promise<number> {
  let sum = 0;
  for (const { rssBytes } of (await resourcesOf(pid)).values()) sum += rssBytes;
  return sum;
}

/** The largest growth of the process until `work` is done. */
async function growthDuring(pid: number, work: Promise<unknown>): Promise<number> {
  const before = await rssOf(pid);
  let most = before;
  while (!(await within(50, work))) most = Math.max(most, await rssOf(pid));
  return most - before;
}

function largeForm(): ReadableStream<Uint8Array> {
  const head = `${partHead({ field: "purpose" })}batch\r\n${partHead({ field: "file", name: "large" })}`;
  const piece = Buffer.alloc(MIB, "x");
  let sent = -1;
  return new ReadableStream({
    pull(controller) {
      if (sent === -1) controller.enqueue(Buffer.from(head));
      else if (sent < LARGE) controller.enqueue(Uint8Array.from(piece));
      else {
        controller.enqueue(Buffer.from(FORM_END));
        controller.close();
      }
      sent++;
    },
  });
}

describe("files", () => {
  it(
    "come and go through little memory, and a client that reads nothing holds little",
    async () => {
      const [first] = served.fleet.gateways;
      const { pid } = first?.member.process ?? expect.fail("there is a gateway");
      await upload(served.url, small);
      let id = "";
      const coming = async () => {
        const headers = { "content-type": FORM_TYPE };
        const terms: RequestInit = { method: "POST", body: largeForm(), headers, duplex: "half" };
        const answer = await fetch(`${served.url}/v1/files`, terms);
        const body = (await answer.json()) as { id: string; bytes: number };
        expect([answer.status, body.bytes]).toEqual([200, LARGE * MIB]);
        ({ id } = body);
      };
      const comingGrowth = await growthDuring(pid, coming());
      const going = async () => {
        const { body } = await fetch(`${served.url}/v1/files/${id}/content`);
        let bytes = 0;
        for await (const piece of body ?? expect.fail("there is a body")) bytes += piece.length;
        expect(bytes).toBe(LARGE * MIB);
      };
      const goingGrowth = await growthDuring(pid, going());
      const idle = async () => {
        const asked = Array.from({ length: 10 }, () => get(`${served.url}/v1/files/${id}/content`));
        await Promise.all(asked.map((one) => new Promise((resolve) => one.once("response", resolve))));
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        for (const one of asked) one.destroy();
      };
      const idleGrowth = await growthDuring(pid, idle());
      const told = {
        mib: LARGE,
        coming: comingGrowth,
        going: goingGrowth,
        unread: idleGrowth,
        after: await rssOf(pid),
      };
      if (full) console.log(told);
      expect(Math.max(comingGrowth, goingGrowth, idleGrowth), JSON.stringify(told)).toBeLessThan(GROWTH_BYTES);
      await fetch(`${served.url}/v1/files/${id}`, { method: "DELETE" });
    },
    full ? 600_000 : 120_000,
  );

  it("of a gateway that was killed are removed by the jobs process, and those that expire", async () => {
    const [, second] = served.fleet.gateways;
    const { member, url } = second ?? expect.fail("there are two gateways");
    const kept = idOf(await upload(served.url, small));
    const expiring = idOf(await upload(served.url, small));
    const used = idOf(await upload(served.url, small));
    await served.redis.zadd(`{files}:users:default:${used}`, Date.now() + 3_600_000, "batch_1");
    const before = await messagesIn(served.fleet.nats.url);
    const sent = beginUpload(url);
    sent.write(Buffer.alloc(8 * MIB, "x"));
    await until(async () => (await messagesIn(served.fleet.nats.url)) >= before + 40);
    await member.kill();
    sent.destroy();
    await member.start();
    await served.redis.hset(`{files}:file:default:${expiring}`, "expires", "1");
    // A file that has not expired is not due, so time passes for the other files alone.
    const names = await served.redis.zrange("{files}:due", "0", "-1");
    for (const name of names) if (!name.endsWith(kept)) await served.redis.zadd("{files}:due", "1", name);
    const objects = await readUntil(
      () => objectsIn(served.fleet.nats.url),
      (found) => !found.some(({ name }) => name === expiring),
      { patienceMs: 25_000, everyMs: 200 },
    );
    const there = objects.map(({ name }) => name);
    expect(there).toContain(kept);
    expect(there).toContain(used);
    expect(there).not.toContain(expiring);
    // A chunk and a description of each kept file, and nothing of the unfinished upload.
    await until(async () => (await messagesIn(served.fleet.nats.url)) === 2 * objects.length);
    await served.redis.zrem(`{files}:users:default:${used}`, "batch_1");
    await makeAllDue();
    await until(async () => (await served.redis.hlen("{files}:sums")) === 0);
    expect(await messagesIn(served.fleet.nats.url)).toBe(0);
  });

  it("are refused with 503 while NATS is gone, while all else works, and are there afterwards", async () => {
    const id = idOf(await upload(served.url, small));
    const gone = idOf(await upload(served.url, small));
    await served.fleet.nats.kill();
    const answer = await upload(served.url, small);
    expect([answer.status, answer.body]).toMatchObject([503, { error: { code: "unavailable" } }]);
    expect((await fetch(`${served.url}/v1/files/${id}/content`)).status).toBe(503);
    // The records of files are in Redis.
    expect((await fetch(`${served.url}/v1/files/${id}`)).status).toBe(200);
    expect((await fetch(`${served.url}/v1/files/${gone}`, { method: "DELETE" })).status).toBe(200);
    expect((await fetch(`${served.url}/v1/models`)).status).toBe(200);
    await served.fleet.nats.restart();
    const read = await readUntil(
      async () => fetch(`${served.url}/v1/files/${id}/content`),
      ({ status }) => status === 200,
    );
    expect(await read.text()).toBe("{}\n");
    await makeAllDueBut(id);
    await until(async () => (await objectsIn(served.fleet.nats.url)).every(({ name }) => name === id));
  });
});

async function makeAllDueBut(id: string): Promise<void> {
  for (const name of await served.redis.zrange("{files}:due", "0", "-1")) {
    if (!name.endsWith(id)) await served.redis.zadd("{files}:due", "1", name);
  }
}
