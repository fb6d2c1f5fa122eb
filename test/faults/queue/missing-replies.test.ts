import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectBus } from "#shared/nats/connect.js";
import { decodeMark, encodeMessage, replyKey } from "#shared/contract/reply.js";
import { replySubject } from "#shared/queue/keys.js";
import { delay } from "#shared/retry.js";
import { startNats, type NatsServer } from "../../support/brokers/nats.js";
import { Proxy } from "../../support/fleet/proxy.js";
import { useLab } from "../../support/queue/lab.js";
import { answersTo, AnsweringWorker, GATEWAY, outcomesOf, WaitingGateway } from "../../support/queue/replies.js";
import { silentLog } from "../../support/silent.js";

/** So many requests that a look at each in turn, without a reason, takes longer than any test. */
const MANY = 2_000;

describe("a gateway that waits for many requests while NATS is up", () => {
  const lab = useLab();
  let nats: NatsServer;
  /** The worker's connection to NATS. */
  let line: Proxy;
  let gateway: WaitingGateway;
  let worker: AnsweringWorker;
  beforeEach(async () => {
    nats = await startNats();
    line = await Proxy.start(nats.port);
    gateway = await WaitingGateway.start(lab, nats.url);
    worker = await AnsweringWorker.start(lab, `nats://127.0.0.1:${line.port}`);
  });
  afterEach(async () => {
    await worker.close();
    await gateway.close();
    await line.dispose();
    await nats.dispose();
  });

  it("asks Redis next to nothing", async () => {
    const open = await gateway.open(MANY);
    await worker.settle(open.slice(0, 10));
    await outcomesOf(open.slice(0, 10));
    const calls = async () => {
      const counts = (await lab.redis.info("commandstats")).matchAll(/cmdstat_([^:|]+)[^:]*:calls=(\d+)/g);
      return [...counts].reduce((sum, [, name, count]) => sum + (name === "info" ? 0 : Number(count)), 0);
    };
    const [before, since] = [await calls(), performance.now()];
    await delay(4_000);
    const perSecond = ((await calls()) - before) / ((performance.now() - since) / 1_000);
    console.log(`${MANY} open: ${perSecond.toFixed(0)} commands/s`);
    expect(perSecond).toBeLessThanOrEqual(50);
    expect(gateway.pending.size).toBe(MANY - 10);
  });

  it("finds what a worker has committed that died before it could publish", async () => {
    const open = await gateway.open(MANY);
    const committed = open.slice(-50);
    worker.loses = (message) => {
      if (decodeMark(message).kind === "replies") worker.die();
      return decodeMark(message).kind === "replies";
    };
    await worker.settle(committed);
    expect(await outcomesOf(committed)).toEqual(answersTo(committed));
    expect(gateway.pending.size).toBe(MANY - 50);
  });

  it("finds what a lost message should have brought, be it the last one or not", async () => {
    const open = await gateway.open(MANY);
    const lost = [open.slice(-10), open.slice(-20, -10)] as const;
    worker.loses = (message) => decodeMark(message).kind === "replies";
    await worker.settle(lost[0]);
    worker.loses = () => false;
    await worker.settle(open.slice(0, 10));
    expect(await outcomesOf(lost[0])).toEqual(answersTo(lost[0]));
    worker.loses = (message) => decodeMark(message).kind === "replies";
    await worker.settle(lost[1]);
    expect(await outcomesOf(lost[1])).toEqual(answersTo(lost[1]));
    expect(gateway.pending.size).toBe(MANY - 30);
  });

  it("believes nobody who only reaches NATS, and hears nothing twice", async () => {
    const [first, second] = await gateway.open(2);
    if (first === undefined || second === undefined) throw new Error("two were opened");
    const heard: Buffer[] = [];
    const stranger = connectBus({ url: nats.url, name: "stranger", log: silentLog });
    await stranger.subscribe(replySubject(GATEWAY), (message) => heard.push(Buffer.from(message)));
    await expect.poll(() => stranger.isUp()).toBe(true);
    await worker.settle([first]);
    expect(await outcomesOf([first])).toEqual(answersTo([first]));
    await expect.poll(() => heard.some((message) => decodeMark(message).kind === "replies")).toBe(true);

    const { sender, channel, number } = decodeMark(heard.at(-1) ?? Buffer.alloc(0));
    const forged = { name: second.delivery.request, kind: "result", body: Buffer.from("forged") } as const;
    const genuineHead = Buffer.from(heard.at(-1) ?? "");
    const mark = { sender, channel, number: number + 1, kind: "replies" } as const;
    for (const key of [Buffer.alloc(32), replyKey(Buffer.alloc(32, 2), sender, GATEWAY)]) {
      const message = encodeMessage(key, mark, [forged]);
      stranger.publish(replySubject(GATEWAY), message);
      // The tag of a genuine message does not fit other bytes.
      genuineHead.copy(message, 0, 0, 16);
      stranger.publish(replySubject(GATEWAY), message);
    }
    // An earlier answer, for a request that is repeated under its old name.
    const again = gateway.expect(first.delivery.request);
    for (const message of heard) stranger.publish(replySubject(GATEWAY), message);
    await stranger.close();
    expect(gateway.pending.size).toBe(2);
    again.forget();
    await worker.settle([second]);
    expect(await outcomesOf([second])).toEqual(answersTo([second]));
  });

  it("finds what a worker commits that has lost its way to NATS", async () => {
    const open = await gateway.open(MANY);
    await line.dispose();
    await expect.poll(() => worker.bus.isUp()).toBe(false);
    await worker.settle(open.slice(-50));
    expect(await outcomesOf(open.slice(-50))).toEqual(answersTo(open.slice(-50)));
    expect(gateway.pending.size).toBe(MANY - 50);
    expect(gateway.bus.isUp()).toBe(true);
  });

  it("finds what a worker commits whose messages vanish before anybody has noticed", async () => {
    const open = await gateway.open(MANY);
    await worker.settle(open.slice(0, 10));
    await outcomesOf(open.slice(0, 10));
    line.blackHole("toServer");
    for (let i = 1; i <= 6; i++) {
      const some = open.slice(MANY - 10 * i, MANY - 10 * (i - 1));
      await worker.settle(some);
      expect(await outcomesOf(some)).toEqual(answersTo(some));
    }
    expect(gateway.bus.isUp()).toBe(true);
  });

  it("finds the outcomes of requests that another gateway has admitted and gets the replies to", async () => {
    await gateway.open(MANY);
    const retried = await gateway.open(100, "gw-gone");
    await worker.settle(retried);
    expect(await outcomesOf(retried)).toEqual(answersTo(retried));
    expect(gateway.pending.size).toBe(MANY);
  });

  it("finds that Redis came back without the requests", async () => {
    const open = await gateway.open(MANY);
    await lab.redis.flushall();
    lab.redis.disconnect(true);
    const outcomes = await outcomesOf(open);
    expect(outcomes.every((outcome) => outcome.kind === "error" && outcome.code === "request_lost")).toBe(true);
  });
});
