/**
 * Every message arrives at least once, under one id, although jobs processes die or stop in the
 * middle of deliveries.
 */
import { Queue } from "bullmq";
import { describe, expect, it } from "vitest";
import { QUEUE_PREFIX } from "#shared/queue/keys.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { useReceiver } from "../../support/jobs/use-receiver.js";
import { noteExpiries, verified } from "../../support/jobs/webhooks.js";

const served = useFleet({
  workers: 0,
  jobs: 2,
  models: [],
  jobsEnv: { BATON_WEBHOOK_RETRY_MS: "100,200,400" },
  direct: true,
});

describe("two jobs processes", () => {
  const own = useReceiver(served);
  const idsAt = (path: string) => own.receiver.at(path).map(({ id }) => id);
  const all = (count: number, state: string) => Array.from({ length: count }, () => state);
  const remove = (webhook: string) => own.client.ask("DELETE", `/webhooks/${webhook}`);

  it("are listed in the fleet, beside the gateway", async () => {
    interface Started {
      readonly pid: number;
    }
    interface Listed extends Started {
      readonly started_at: string;
    }
    const fleet = async () => (await own.client.ask<{ gateways: Listed[]; jobs: Listed[] }>("GET", "/fleet")).body;
    const { jobs, gateways } = served.fleet;
    const pids = (members: readonly Started[]) => members.map(({ pid }) => pid).sort((a, b) => a - b);
    await expect.poll(async () => pids((await fleet()).jobs)).toEqual(pids(jobs.map(({ process }) => process)));
    expect(pids((await fleet()).gateways)).toEqual(gateways.map(({ member }) => member.process.pid));
    for (const { started_at: at } of (await fleet()).jobs) expect(Date.parse(at)).not.toBeNaN();
  });

  it("share the messages: each is sent once", async () => {
    const MESSAGES = 60;
    const { id } = await own.client.register(own.receiver.url("/shared"));
    await noteExpiries(own.redis, "default", MESSAGES);
    await expect.poll(() => own.states(id)).toEqual(all(MESSAGES, "delivered"));
    expect(new Set(idsAt("/shared")).size).toBe(MESSAGES);
    expect(idsAt("/shared")).toHaveLength(MESSAGES);
    await remove(id);
  });

  it("are both killed in the middle of deliveries: each is made again, with the same id (F31)", async () => {
    // The deliveries that two processes have under way at an endpoint, and a few that find no room.
    const [sent, left] = [8, 4];
    let answers = false;
    const url = own.receiver.on("/killed", () => (answers ? 204 : undefined));
    const { id, secret } = await own.client.register(url);
    await noteExpiries(own.redis, "default", sent + left);
    await expect.poll(() => idsAt("/killed").length).toBe(sent);
    await sendAwayForLong(left);
    await Promise.all(served.fleet.jobs.map((one) => one.kill()));
    answers = true;
    await noteExpiries(own.redis, "default", 1);
    await Promise.all(served.fleet.jobs.map((one) => one.start()));
    await expect.poll(() => own.states(id)).toEqual(all(sent + left + 1, "delivered"));
    const ids = idsAt("/killed");
    expect(new Set(ids).size).toBe(sent + left + 1);
    for (const one of own.receiver.at("/killed")) verified(one, secret);
    for (const one of new Set(ids.slice(0, sent))) expect(ids.filter((other) => other === one)).toHaveLength(2);
    await remove(id);
  });

  const FOR_LONG_MS = 300_000;

  /** Delays the jobs without room for five minutes, as after a receiver that hung. */
  async function sendAwayForLong(count: number): Promise<void> {
    const { host, port } = own.redis.options;
    const queue = new Queue("deliveries", { connection: { host, port }, prefix: QUEUE_PREFIX, skipMetasUpdate: true });
    await expect
      .poll(async () => {
        const delayed = await queue.getDelayed();
        // A job that becomes due at this moment finds no room either, and is delayed again.
        for (const job of delayed) await job.changeDelay(FOR_LONG_MS).catch(() => undefined);
        const far = (await queue.getDelayed()).filter(({ delay }) => delay >= FOR_LONG_MS / 2);
        return far.length;
      })
      .toBe(count);
    await queue.close();
  }

  it("are told to stop while they send: what was begun is finished first, once", async () => {
    const pending: (() => void)[] = [];
    const url = own.receiver.on("/drained", (_, response) => {
      pending.push(() => response.writeHead(204).end());
      return undefined;
    });
    const { id } = await own.client.register(url);
    await noteExpiries(own.redis, "default", 2);
    await expect.poll(() => pending.length).toBe(2);
    const ends = served.fleet.jobs.map((one) => one.terminate(20_000));
    await Promise.all(served.fleet.jobs.map(({ process }) => process.waitForMessage("stopping")));
    for (const answer of pending) answer();
    expect(await Promise.all(ends)).toEqual([
      { code: 0, signal: null },
      { code: 0, signal: null },
    ]);
    expect(await own.states(id)).toEqual(all(2, "delivered"));
    expect(idsAt("/drained")).toHaveLength(2);
    // The fleet still lists killed processes for a few seconds.
    const { body } = await own.client.ask<{ jobs: readonly { pid: number }[] }>("GET", "/fleet");
    const listed = new Set(body.jobs.map(({ pid }) => pid));
    expect(served.fleet.jobs.filter(({ process }) => listed.has(process.pid))).toEqual([]);
  });
});
