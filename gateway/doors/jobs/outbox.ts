/**
 * Takes events out of the outboxes of all buckets, and makes one delivery for every webhook that
 * wants the event. The name of a delivery is derived from its event. So if a process dies and
 * another process takes the entry again, the second process finds the deliveries of the first.
 */
import { createHmac } from "node:crypto";
import type { Logger } from "pino";
import { ZodError } from "zod";
import { REPLAY, SCHEDULED } from "#shared/queue/pieces/events.js";
import {
  acknowledgeEvent,
  createEventsGroup,
  readEvents,
  removeIdleConsumers,
  takeOverEvents,
  type OutboxEntry,
} from "#shared/queue/webhooks/outbox.js";
import { eventsKey } from "#shared/queue/keys.js";
import { DUE, dueJobOf, type DueJob } from "#shared/queue/pieces/later.js";
import type { ScheduleName } from "#shared/queue/schedules/schedules.js";
import {
  beginDelivery,
  type DeliveryContent,
  type DeliveryRun,
  type Kept,
} from "#shared/queue/webhooks/begin-delivery.js";
import { whenReady, type BlockingReader, type RedisClient } from "#shared/redis/connect.js";
import { isReplyError } from "#shared/redis/script.js";
import { delay, within } from "#shared/retry.js";
import type { Webhooks } from "../../webhooks/webhooks.js";
import { UnreadableError } from "../../webhooks/webhook.js";
import { targetText } from "../../webhooks/target.js";
import { eventToSend, noticedAt, type EventToSend, type JobTeller } from "./event-body.js";

/** Makes the runs of deliveries. */
export interface RunKeeper {
  /** Makes the run once, even if the caller adds the run several times. */
  add(run: DeliveryRun): Promise<void>;
  /** Forgets the run: no process has to make the run any more. */
  remove(run: DeliveryRun): Promise<void>;
}

/** Queues jobs when they are due. */
export interface TimerKeeper {
  /** Queues the job once, if the job still waits, even after several calls. */
  set(due: DueJob): Promise<void>;
}

/** Runs schedules that are due. */
export interface ScheduleKeeper {
  /** Wakes a process in time for a schedule that is new or has resumed. */
  notice(schedule: ScheduleName): Promise<void>;
}

export interface OutboxSettings {
  readonly redis: RedisClient;
  /** Opens a connection for blocking reads; in a Cluster, for reads of this key's slot. */
  readonly openReader: (key: string) => BlockingReader;
  readonly buckets: number;
  /** The name of this process among its replicas. */
  readonly consumer: string;
  readonly webhooks: Webhooks;
  readonly jobs: JobTeller;
  readonly kept: Kept;
  /** The deployment's secret, so that a client cannot guess the name of a message. */
  readonly secret: () => Buffer;
  readonly deliveries: RunKeeper;
  readonly timers: TimerKeeper;
  readonly schedules: ScheduleKeeper;
  readonly log: Logger;
}

/** Redis answers a blocked read after this time at the latest, in ms. */
const BLOCK_MS = 5_000;
/** A link without an answer for this much longer, in ms, counts as lost. */
const SILENCE_MS = 2_000;
const PAUSE_MS = 200;
/** Pause before the next read, in ms, after a failure to handle an event. */
const PAUSE_AFTER_FAILURE_MS = 1_000;
/** Leaves an unreadable event for this long to a newer version, which may start soon. */
const LEFT_FOR_MS = 86_400_000;
/** Takes over an entry that any process, even this one, has had for this long. */
const TAKE_OVER_AFTER_MS = 5_000;
const TAKE_OVER_EVERY_MS = 5_000;
/** One round of this many removes the consumers of dead processes. */
const REMOVE_EVERY = 60;
const CONSUMER_IDLE_MS = 600_000;
/** Interval at which the process notes in the buckets which events webhooks want, in ms. */
const TELL_EVERY_MS = 30_000;

export class Outbox {
  readonly #settings: OutboxSettings;
  readonly #keys: readonly string[];

  constructor(settings: OutboxSettings) {
    this.#settings = settings;
    this.#keys = Array.from({ length: settings.buckets }, (_, bucket) => eventsKey(bucket));
  }

  /** Takes events until `signal` aborts, and then finishes the events that it has taken. */
  async run(signal: AbortSignal): Promise<void> {
    // One read waits for all streams; in a Cluster, for the streams of one bucket.
    const groups = this.#settings.redis.isCluster ? this.#keys.map((key) => [key]) : [this.#keys];
    await Promise.all([
      ...groups.map((keys) => this.#read(keys, signal)),
      this.#takeOver(signal),
      this.#keepTold(signal),
    ]);
  }

  async #read(keys: readonly string[], signal: AbortSignal): Promise<void> {
    const { openReader, consumer, log } = this.#settings;
    const [first] = keys;
    if (first === undefined) return;
    const reader = openReader(first);
    signal.addEventListener("abort", () => reader.disconnect(), { once: true });
    await this.#createGroups(keys);
    while (!signal.aborted) {
      try {
        await whenReady(reader, signal);
        const reading = readEvents(reader, keys, consumer, BLOCK_MS);
        reading.catch(() => undefined);
        if (!(await within(BLOCK_MS + SILENCE_MS, reading))) throw new Error("no answer");
        // If one event fails now, most later events fail, too.
        if (!(await this.#handleAll(await reading))) await delay(PAUSE_AFTER_FAILURE_MS, signal);
      } catch (error) {
        if (signal.aborted) break;
        log.debug({ error: String(error) }, "the outbox cannot be read now");
        if (isReplyError(error, "NOGROUP")) await this.#createGroups(keys);
        else if (reader.status === "ready" && !isReplyError(error, "")) reader.disconnect(true);
        await delay(PAUSE_MS, signal);
      }
    }
    reader.disconnect();
  }

  async #createGroups(keys: readonly string[]): Promise<void> {
    const { redis, log } = this.#settings;
    try {
      await Promise.all(keys.map((key) => createEventsGroup(redis, key)));
    } catch (error) {
      log.debug({ error: String(error) }, "the outbox's group cannot be made now");
    }
  }

  async #takeOver(signal: AbortSignal): Promise<void> {
    const { redis, log } = this.#settings;
    for (let round = 1; !signal.aborted; round++) {
      await delay(TAKE_OVER_EVERY_MS * (0.8 + Math.random() * 0.4), signal);
      if (signal.aborted || redis.status !== "ready") continue;
      for (const key of this.#keys) {
        try {
          await this.#takeOverAll(key, signal);
          if (round % REMOVE_EVERY === 0) await removeIdleConsumers(redis, key, CONSUMER_IDLE_MS);
        } catch (error) {
          log.debug({ error: String(error) }, "what others have left in the outbox cannot be taken over now");
        }
      }
    }
  }

  async #keepTold(signal: AbortSignal): Promise<void> {
    const { webhooks, log } = this.#settings;
    while (!signal.aborted) {
      await webhooks.tellAll(log).catch((error: unknown) => {
        log.debug({ error: String(error) }, "which events are wanted cannot be told now");
      });
      await delay(TELL_EVERY_MS, signal);
    }
  }

  /** Ends early if Redis cannot take the results of a page. */
  async #takeOverAll(key: string, signal: AbortSignal): Promise<void> {
    const { redis, consumer } = this.#settings;
    for (let from: string | undefined = "0-0"; from !== undefined && !signal.aborted;) {
      const { entries, next } = await takeOverEvents(redis, key, consumer, TAKE_OVER_AFTER_MS, from);
      from = (await this.#handleAll(entries)) ? next : undefined;
    }
  }

  /** @returns whether every event was handled, or is left to a newer version */
  async #handleAll(entries: readonly OutboxEntry[]): Promise<boolean> {
    const errors = (await Promise.all(entries.map((entry) => this.#handle(entry)))).filter((one) => one !== undefined);
    const [first] = errors;
    if (first === undefined) return true;
    const { log } = this.#settings;
    log.warn({ events: errors.length, error: String(first) }, "events could not be handled; they are tried again");
    return errors.every((error) => error instanceof UnreadableError);
  }

  /**
   * Acknowledges an entry only after success, so that a process takes a failed entry again.
   * @returns the error of a failed entry
   */
  async #handle(entry: OutboxEntry): Promise<Error | undefined> {
    try {
      if (entry.type === REPLAY) await this.#replay(entry);
      else if (entry.type === DUE) await this.#schedule(entry);
      else if (entry.type === SCHEDULED) await this.#notice(entry);
      else await this.#spread(entry);
      await acknowledgeEvent(this.#settings.redis, entry);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #replay({ id, tenant, facts }: OutboxEntry): Promise<void> {
    const message = named(facts, "message");
    // Gateways of the version before name no run.
    const run = named(facts, "run") ?? id;
    if (message !== undefined) await this.#begin({ tenant, message, run }, undefined);
  }

  async #schedule({ key, facts }: OutboxEntry): Promise<void> {
    const due = dueJobOf(this.#keys.indexOf(key), facts);
    if (due !== undefined) await this.#settings.timers.set(due);
  }

  async #notice({ tenant, facts }: OutboxEntry): Promise<void> {
    const id = named(facts, "id");
    if (id !== undefined) await this.#settings.schedules.notice({ tenant, id });
  }

  async #spread(entry: OutboxEntry): Promise<void> {
    const { key, id, tenant } = entry;
    const event = await this.#readEvent(entry);
    if (event === undefined) return;
    const { type, job, own, body } = event;
    const begin = async (name: string, where: Pick<DeliveryContent, "webhook" | "target">) => {
      const run = { tenant, message: this.#messageOf(`${key} ${id} ${name}`), run: id };
      await this.#begin(run, { event: type, job, ...where, body });
    };
    const named = own !== undefined && "id" in own ? own.id : undefined;
    for (const webhook of await this.#settings.webhooks.list(tenant)) {
      const isWanted = webhook.events.includes(type) || webhook.id === named;
      if (webhook.enabled && isWanted) await begin(webhook.id, { webhook: webhook.id, target: "" });
    }
    if (own !== undefined && "url" in own) await begin(job, { webhook: "", target: targetText(own) });
  }

  /** @returns undefined for an event that no version can read: the process drops the event */
  async #readEvent(entry: OutboxEntry): Promise<EventToSend | undefined> {
    const { jobs, log } = this.#settings;
    try {
      return await eventToSend(this.#keys.indexOf(entry.key), entry, jobs);
    } catch (error) {
      const isLeft = error instanceof UnreadableError && Date.now() - noticedAt(entry) < LEFT_FOR_MS;
      if (isLeft || !(error instanceof UnreadableError || isUnreadable(error))) throw error;
      const { id: event, type } = entry;
      log.error({ event, type, error: String(error) }, "an event that cannot be read is dropped");
      return undefined;
    }
  }

  async #begin(run: DeliveryRun, content: DeliveryContent | undefined): Promise<void> {
    const { redis, kept, deliveries } = this.#settings;
    const { said, replaced } = await beginDelivery(redis, run, kept, content);
    if (said === "begun") await deliveries.add(run);
    for (const one of replaced) await deliveries.remove(one);
  }

  #messageOf(what: string): string {
    return `msg_${createHmac("sha256", this.#settings.secret()).update(what).digest().subarray(0, 18).toString("base64url")}`;
  }
}

/**
 * Whether an entry has a form that no script writes. Any other error may be gone at the next
 * attempt.
 */
function isUnreadable(error: unknown): boolean {
  return error instanceof SyntaxError || error instanceof ZodError;
}

/** @returns the name in an entry; undefined if there is none */
function named(facts: string, member: "message" | "run" | "id"): string | undefined {
  try {
    const { [member]: name } = JSON.parse(facts) as { readonly [member: string]: unknown };
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}
