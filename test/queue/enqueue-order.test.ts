/**
 * Steps of one sequence are admitted in the order of their arrival, also if a gateway has to make
 * them anew for another version.
 */
import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { CorrelationId } from "#shared/contract/sequence.js";
import { pinOf } from "#shared/queue/address.js";
import { waitKey } from "#shared/queue/keys.js";
import { adopt } from "#shared/queue/sequences/adopt.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { enqueue, type EnqueueSettings } from "../../gateway/admission/enqueue.js";
import type { AnyRequest } from "../../gateway/admission/inference.js";
import { servedModel } from "../fixtures/served-models.js";
import { LIMITS, useLab, type Lab } from "../support/queue/lab.js";
import { deleteFacts, factsOf } from "../support/queue/facts.js";

const SEVEN: CorrelationId = { kind: "uint64", value: 7n };

/** A gateway's settings for the lab's queue; `models` names the served models. */
function queueOf({ redis }: Lab, models: EnqueueSettings["models"]): EnqueueSettings {
  return {
    redis,
    batcher: new AdmissionBatcher(redis, { gateway: `gw-${randomUUID()}`, limits: LIMITS }),
    buckets: 1,
    models,
    secret: () => Buffer.from("of the lab"),
    idempotencyTtlMs: 60_000,
  };
}

/** Admits a step of sequence 7. @param mayBegin whether the step may begin the sequence */
function sendStep(
  lab: Lab,
  queue: EnqueueSettings,
  name: string,
  model: ServedModel,
  start: boolean,
  mayBegin = false,
) {
  const sequence = { id: SEVEN, start, end: false, mayBegin };
  const request: AnyRequest = { model, tenant: "default", sequence, idempotencyKey: undefined, deadlineMs: 60_000 };
  return enqueue(queue, {
    request,
    address: lab.addressOf(name),
    encode: () => Buffer.from("frame"),
    under: (other) => ({ ...request, model: other, sequence: { ...sequence, mayBegin: false } }),
    outcomeTtlMs: 60_000,
    attendedMs: 0,
  });
}

describe("steps that come one behind the other", () => {
  const lab = useLab();

  it("keep their order where some are made anew for another version", async () => {
    const older = servedModel(lab.lane.model, { version: "1" });
    const newer = servedModel(lab.lane.model, { version: "2" });
    const queue = queueOf(lab, {
      heir: () => undefined,
      pinned: (_: string, { version }: { version: string }) => (version === "1" ? older : newer),
    });
    const send = (name: string, model: ServedModel, start = false) => sendStep(lab, queue, name, model, start);
    await send("first", older, true);
    expect((await factsOf(lab.redis, lab.lane, "default:u7"))?.pin).toContain(pinOf(older).version);
    // The client names no version in two steps of three, and in the middle sends START again.
    const names = Array.from({ length: 30 }, (_, i) => `step-${String(i).padStart(2, "0")}`);
    const sent = [];
    for (const [i, name] of names.entries()) {
      sent.push(send(name, i % 3 === 2 ? older : newer, i === 15));
      if (i % 4 === 3) await setImmediate();
      if (i % 10 === 9) await lab.redis.ping();
    }
    const said = await Promise.all(sent);
    expect(said.map(({ version }) => version)).toEqual(names.map((_, i) => (i < 15 ? "1" : "2")));
    const waiting = await lab.redis.lrange(waitKey(lab.lane, "default:u7"), 0, -1);
    expect(waiting.map((step) => /step-\d\d/.exec(step)?.[0])).toEqual(names);
  });

  it("keep their order where their sequence is adopted by another version", async () => {
    const older = servedModel(lab.lane.model, { version: "1" });
    const newer = servedModel(lab.lane.model, { version: "2" });
    let isRetired = false;
    const queue = queueOf(lab, {
      heir: () => newer,
      pinned: (_: string, { version }: { version: string }) => {
        if (version === "2") return newer;
        return isRetired ? undefined : older;
      },
    });
    const send = (name: string, model: ServedModel, start = false) => sendStep(lab, queue, name, model, start);
    // Redis has the script now, so the first adoption takes no longer than an admission call.
    const none = { bucket: 0, model: lab.lane.model, name: "default:none" };
    await adopt(lab.redis, none, pinOf(older), pinOf(newer));
    await send("first", older, true);
    isRetired = true;
    const names = Array.from({ length: 12 }, (_, i) => `step-${String(i).padStart(2, "0")}`);
    const sent = [];
    for (const [i, name] of names.entries()) {
      sent.push(send(name, newer));
      if (i < 3) await setImmediate();
    }
    const said = await Promise.all(sent);
    expect(said.map(({ version }) => version)).toEqual(names.map(() => "2"));
    const waiting = await lab.redis.lrange(waitKey(lab.lane, "default:u7"), 0, -1);
    expect(waiting.map((step) => /step-\d\d/.exec(step)?.[0])).toEqual(names);
  });

  it("begin a sequence under the latest version where it ends while they are made for its own", async () => {
    const older = servedModel(lab.lane.model, { version: "1" });
    const newer = servedModel(lab.lane.model, { version: "2" });
    const asked: string[] = [];
    const ends: Promise<unknown>[] = [];
    const queue = queueOf(lab, {
      heir: () => undefined,
      pinned: (_: string, { version }: { version: string }) => {
        asked.push(version);
        // The deletion leaves on this connection before the next try of the step.
        ends.push(deleteFacts(lab.redis, lab.lane, "default:u7"));
        return older;
      },
    });
    const send = (name: string, model: ServedModel, start: boolean) => sendStep(lab, queue, name, model, start, !start);
    await send("first", older, true);
    expect(await send("second", newer, false)).toEqual({ said: "admitted", version: "2" });
    expect(asked).toEqual(["1"]);
    const facts = await factsOf(lab.redis, lab.lane, "default:u7");
    expect(facts).toMatchObject({ pin: expect.stringMatching(/^2:/) as string, start: 1, next: 1 });
    await Promise.all(ends);
  });
});
