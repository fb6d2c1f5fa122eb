/**
 * The runs of deliveries, as BullMQ jobs: one for each run, which waits there for its next attempt.
 * The processors send and wait, and never compute. If a run loses its lock or its process, another
 * process makes the run again. The receiver recognizes the message by its id.
 */
import { DelayedError, type ConnectionOptions, type Job, type Queue } from "bullmq";
import type { Logger } from "pino";
import { Webhook as Signer } from "standardwebhooks";
import { jobKey } from "#shared/queue/keys.js";
import { readDelivery, type Delivery } from "#shared/queue/webhooks/deliveries.js";
import type { DeliveryRun, Kept } from "#shared/queue/webhooks/begin-delivery.js";
import { noteAttempt, type Noted } from "#shared/queue/webhooks/note-attempt.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { decodeJobId } from "../../jobs/view.js";
import { SealedError, type SecretBox } from "../../webhooks/secrets.js";
import { parseTarget, webhookOfJob } from "../../webhooks/target.js";
import { secretsOf, type Webhook } from "../../webhooks/webhook.js";
import type { Webhooks } from "../../webhooks/webhooks.js";
import { countAttempt, countDelivery } from "./counts.js";
import { lookForLeft } from "./left-runs.js";
import type { Sender } from "./sender.js";
import { Slots } from "./slots.js";
import { verdictOn, type Answered, type Verdict } from "./verdict.js";
import { WorkQueue } from "./work-queue.js";

export interface DeliveriesSettings {
  readonly redis: RedisClient;
  /** From `connectForQueue`. */
  readonly connection: ConnectionOptions;
  readonly webhooks: Webhooks;
  readonly box: SecretBox;
  readonly sender: Sender;
  /** Waits before the second attempt, the third and so on, in ms. */
  readonly waits: readonly number[];
  readonly kept: Kept;
  readonly version: string;
  /** Whether messages name the trace of the request that has submitted their job. */
  readonly isTraced: boolean;
  readonly log: Logger;
}

const QUEUE = "deliveries";
/**
 * Attempts at a time: in all, for a tenant, at a host, and at one of the host's endpoints. Many
 * jobs may name their own endpoints at one host.
 */
const AT_ONCE = { all: 400, tenant: 100, host: 16, endpoint: 4 };
/** Errors after which an attempt counts as hung: it has held a slot for long without an answer. */
const HANGING: readonly (string | null)[] = ["timeout", "connect_timeout"];
/**
 * Most calls of a waiting run, and the pause between the calls, because the queue may not yet have
 * the run among the delayed jobs.
 */
const CALLS = 5;
const CALL_AGAIN_MS = 100;

export class Deliveries {
  readonly #settings: DeliveriesSettings;
  readonly #work: WorkQueue<DeliveryRun>;
  readonly #slots = {
    tenant: new Slots(AT_ONCE.tenant),
    host: new Slots(AT_ONCE.host, { breaks: true }),
    endpoint: new Slots(AT_ONCE.endpoint, { breaks: true }),
  };

  constructor(settings: DeliveriesSettings) {
    const { connection, log } = settings;
    this.#settings = settings;
    this.#work = new WorkQueue({
      name: QUEUE,
      connection,
      atOnce: AT_ONCE.all,
      run: (job, token) => this.#run(job, token),
      log,
    });
  }

  /** For Bull Board. */
  get queue(): Queue {
    return this.#work.queue;
  }

  whenReady(): Promise<unknown> {
    return this.#work.whenReady();
  }

  /** Adds a run, unless BullMQ has the run already. */
  async add(run: DeliveryRun): Promise<void> {
    await this.#work.queue.add("deliver", run, {
      jobId: nameOf(run),
    });
  }

  /**
   * Removes a run that no process has to make any more. A run under way ends by itself. A run that
   * was left behind ends when it is due.
   */
  async remove(run: DeliveryRun): Promise<void> {
    await this.#work.queue.remove(nameOf(run));
  }

  /** Looks for runs that no process would make, or only much too late, until `signal` aborts. */
  lookForLeft(signal: AbortSignal): Promise<void> {
    const { redis, log } = this.#settings;
    const slots = Object.values(this.#slots);
    return lookForLeft(
      {
        redis,
        isCalled: (run) => slots.some((one) => one.isAway(nameOf(run))),
        find: (run) => this.#work.queue.getJob(nameOf(run)),
        add: (run) => this.add(run),
        log,
      },
      signal,
    );
  }

  /** Takes no further run, and waits until the attempts under way have ended. */
  async close(): Promise<void> {
    await this.#work.close();
  }

  async #run(job: Job<DeliveryRun>, token: string | undefined): Promise<void> {
    const { redis, webhooks } = this.#settings;
    const run = job.data;
    const delivery = await readDelivery(redis, run.tenant, run.message);
    // The delivery has expired or ended, or a replay has replaced this run.
    if (delivery === undefined || delivery.run !== run.run || delivery.state !== "pending") return;
    const webhook = isOfJob(delivery)
      ? webhookOfDelivery(run.tenant, delivery)
      : await webhooks.find(run.tenant, delivery.webhook);
    if (webhook === undefined || !webhook.enabled) {
      const error = webhook === undefined ? "webhook_deleted" : "webhook_disabled";
      await this.#note(run, {
        state: "failed",
        attempt: attemptNow({ status: null, error, ms: 0 }),
        nextInMs: undefined,
      });
      return;
    }
    const waitMs = this.#take(webhook, nameOf(run));
    if (waitMs !== undefined) return this.#postpone(job, token, waitMs);
    let answered: Answered | undefined;
    try {
      answered = await this.#attempt(webhook, delivery, await this.#traceOf(run.tenant, delivery));
      countAttempt(answered);
      const verdict = verdictOn(answered, delivery.tries + 1, this.#settings.waits, Math.random(), Date.now());
      if (verdict.said === "gone" && !isOfJob(delivery)) await this.#disable(webhook);
      await this.#note(run, notedOf(verdict, answered));
      if (verdict.said === "again") await this.#postpone(job, token, verdict.inMs);
    } finally {
      this.#release(webhook, answered);
    }
  }

  /** The header `traceparent` of a message: the span of the request that has submitted its job. */
  async #traceOf(tenant: string, { job: id }: Delivery): Promise<string | undefined> {
    const { redis, isTraced } = this.#settings;
    const job = isTraced ? decodeJobId(tenant, id) : undefined;
    if (job === undefined) return undefined;
    const trace = await redis.hget(jobKey(job), "trace").catch(() => null);
    return trace ?? undefined;
  }

  async #attempt(webhook: Webhook, { message, body }: Delivery, traceparent?: string): Promise<Answered> {
    const { box, sender, version, log } = this.#settings;
    const now = new Date();
    let secrets;
    try {
      secrets = secretsOf(webhook, box, now.getTime());
    } catch (error) {
      if (!(error instanceof SealedError)) throw error;
      log.error({ webhook: webhook.id, reason: error.message }, "a delivery cannot be signed");
      return { status: null, error: "secret_unreadable", ms: 0 };
    }
    const headers = {
      "content-type": "application/json",
      "user-agent": `baton/${version}`,
      "webhook-id": message,
      "webhook-timestamp": String(Math.floor(now.getTime() / 1_000)),
      "webhook-signature": secrets.map((secret) => new Signer(secret).sign(message, now, body)).join(" "),
      ...(traceparent !== undefined && { traceparent }),
    };
    return sender.send(webhook.url, headers, body);
  }

  /** Disables the webhook of a receiver that is gone, unless its URL has changed meanwhile. */
  async #disable({ tenant, id, url }: Webhook): Promise<void> {
    await this.#settings.webhooks
      .change(tenant, id, (one) => (one.url === url ? { ...one, enabled: false, disabledReason: "gone" } : one))
      .catch((error: unknown) => this.#settings.log.warn({ webhook: id, error: String(error) }, "not disabled"));
  }

  async #note(run: DeliveryRun, noted: Noted): Promise<void> {
    const said = await noteAttempt(this.#settings.redis, run, noted, this.#settings.kept);
    if (said === "noted" && noted.state !== "pending") countDelivery(noted.state);
  }

  async #postpone(job: Job<DeliveryRun>, token: string | undefined, inMs: number): Promise<never> {
    await job.moveToDelayed(Date.now() + inMs, token);
    throw new DelayedError();
  }

  #take(webhook: Webhook, run: string): number | undefined {
    const now = performance.now();
    const taken: [Slots, string][] = [];
    for (const [slots, name] of this.#slotsOf(webhook)) {
      const waitMs = slots.take(name, now, run);
      if (waitMs !== undefined) {
        for (const [others, theirs] of taken) others.release(theirs, now);
        return waitMs;
      }
      taken.push([slots, name]);
    }
    return undefined;
  }

  #release(webhook: Webhook, answered: Answered | undefined): void {
    const now = performance.now();
    const took = answered && { ms: answered.ms, hung: HANGING.includes(answered.error) };
    for (const [slots, name] of this.#slotsOf(webhook)) {
      for (let calls = slots.release(name, now, took); calls > 0; calls--) void this.#callNext(slots, name);
    }
  }

  /** Lets the next waiting run try now, before its time. */
  async #callNext(slots: Slots, name: string): Promise<void> {
    for (let run = slots.next(name); run !== undefined; run = slots.next(name)) {
      for (let tries = 0; tries < CALLS; tries++) {
        try {
          const job = await this.#work.queue.getJob(run);
          // Another process may have made the run.
          if (job === undefined) break;
          return await job.promote();
        } catch {
          // The run has started at its time, or is not yet among the delayed jobs.
          await delay(CALL_AGAIN_MS);
        }
      }
    }
  }

  #slotsOf({ tenant, url }: Webhook): [Slots, string][] {
    const { origin, pathname } = new URL(url);
    const host = `${tenant} ${origin}`;
    return [
      [this.#slots.tenant, tenant],
      [this.#slots.host, host],
      [this.#slots.endpoint, host + pathname],
    ];
  }
}

function isOfJob({ target }: Delivery): boolean {
  return target !== "";
}

function webhookOfDelivery(tenant: string, { job, target }: Delivery): Webhook | undefined {
  const own = parseTarget(target);
  return "url" in own ? webhookOfJob(tenant, job, own) : undefined;
}

function nameOf({ message, run }: DeliveryRun): string {
  return `${message}.${run}`;
}

function attemptNow({ status, error, ms }: Answered): Noted["attempt"] {
  return { at: new Date(Date.now() - ms).toISOString(), status, error, ms };
}

function notedOf(verdict: Verdict, answered: Answered): Noted {
  const attempt = attemptNow(answered);
  if (verdict.said === "again") return { state: "pending", attempt, nextInMs: verdict.inMs };
  return { state: verdict.said === "delivered" ? "delivered" : "failed", attempt, nextInMs: undefined };
}
