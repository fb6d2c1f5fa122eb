/**
 * The requests whose outcomes this gateway waits for. NATS usually brings the outcome. If a reply
 * may be missing, or will not come, the gateway asks Redis. Workers commit the outcome there before
 * they publish anything, so a lost message costs time and never an answer.
 */
import type { Logger } from "pino";
import { chunks } from "#shared/chunks.js";
import { readKept, readOutcome, storeOutcome, outcomeOf, type Outcome } from "#shared/contract/outcome.js";
import { fixedError } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { requestName, type RequestAddress } from "#shared/queue/address.js";
import { giveOutcome, giveOutcomeInQueue } from "#shared/queue/ends/give-outcome.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { outcomeKey, unpublishedKey } from "#shared/queue/keys.js";
import { cells } from "#shared/metrics/cells.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { passed } from "#shared/stages.js";
import { realWorld, type World } from "#shared/world.js";
import { endsAt, type ExpiredIn, type ModelEnds } from "./counts.js";
import { LookTimes, type Timed } from "./look-times.js";
import { OutcomeReader, type OutcomeReceiver, type Readable } from "./outcome-reader.js";
import { ReplyInbox } from "./reply-inbox.js";
import { TimerWheel } from "./timer-wheel.js";

interface Pending extends Timed, Readable {
  readonly ends: ModelEnds | undefined;
  /** The request's name in replies. */
  readonly name: string;
  readonly address: RequestAddress;
  readonly outcomeTtlMs: number;
  /** When the gateway ends the request at the latest, in ms on `performance.now()`'s clock. */
  readonly deadlineAt: number;
  /** When the gateway refuses the request if no worker has it by then; undefined: never. */
  readonly queuedUntil: number | undefined;
  /** Usually one; more if a client retries under its key while the first try still waits here. */
  readonly waiters: Set<(outcome: Outcome) => void>;
  /**
   * Whether Redis has had a record of the request. If the record is gone afterwards, the request is
   * lost.
   */
  admitted: boolean;
  isAnsweredElsewhere: boolean;
}

/** An outcome to wait for. */
export interface Wait {
  /** The figures of the request's model; absent if nobody counts. */
  readonly ends?: ModelEnds | undefined;
  readonly address: RequestAddress;
  /** How long Redis keeps the outcome if this gateway gives it, in ms. */
  readonly outcomeTtlMs: number;
  /** The gateway ends the request this many ms from now. */
  readonly deadlineMs: number;
  /** The gateway ends the request this many ms from now if no worker has it; absent: never. */
  readonly queuedMs?: number | undefined;
}

/** One waiter's hold on an outcome. */
export interface Expected {
  readonly outcome: Promise<Outcome>;
  /**
   * To be called when Redis has the request.
   * @param isRepeated whether an earlier call admitted the request, perhaps a call of another
   * gateway: the worker then answers that gateway, which may be gone
   */
  readonly admitted: (isRepeated: boolean) => void;
  /** To be called after a refusal, or if the outcome was known at once. */
  readonly forget: () => void;
}

export interface PendingSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  /** This process's name in entries and subjects. */
  readonly gateway: string;
  /** The deployment's secret, which proves the messages of workers. */
  readonly secret: () => Buffer;
  readonly world?: World;
  /** Called for each forged message, with the reason. */
  readonly onForged?: ((reason: string) => void) | undefined;
  readonly log: Logger;
}

/** How often the gateway looks for due requests, in ms. */
const TICK_MS = 25;
/** Other work of this process has held up a tick that is this much late, in ms. */
const HELD_UP_MS = 200;
/**
 * After a long round of looks the gateway leaves Redis alone for as long as the round took, up to
 * this, in ms.
 */
const MOST_REST_MS = 1_000;
/** How often the gateway reads the names that workers without NATS leave in Redis, in ms. */
const NOTES_EVERY_MS = { busUp: 250, busDown: 50 };
const NOTES_AT_ONCE = 1_000;
/**
 * How long after the deadline the gateway answers a request at the latest while Redis is away, in
 * ms.
 */
const GRACE_MS = 5_000;
/** At most this many requests end together when their deadlines pass. */
const EXPIRIES_AT_ONCE = 256;

export class PendingRequests implements OutcomeReceiver<Pending> {
  /** By the name that workers use in their replies. */
  readonly #pending = new Map<string, Pending>();
  readonly #world: World;
  readonly #looks: LookTimes<Pending>;
  readonly #deadlines: TimerWheel<Pending>;
  readonly #settings: PendingSettings;
  readonly #inbox: ReplyInbox;
  readonly #reader: OutcomeReader<Pending>;
  readonly #counts = {
    byNats: cells.counter("baton_outcomes_total", { by: "nats" }),
    byRedis: cells.counter("baton_outcomes_total", { by: "redis" }),
    gaps: cells.counter("baton_reply_gaps_total"),
  };
  /** Whether NATS was up at the last tick, and how many connections there had been by then. */
  #bus = { isUp: false, connections: 0 };
  /** When the last round of looks began. Requests of one round are due together again. */
  #lookedAt: number;

  constructor(settings: PendingSettings) {
    const { world = realWorld } = settings;
    this.#settings = settings;
    this.#world = world;
    this.#looks = new LookTimes(world.now());
    this.#deadlines = new TimerWheel(world.now());
    this.#lookedAt = world.now();
    this.#inbox = new ReplyInbox(settings);
    this.#reader = new OutcomeReader(settings.redis, this);
  }

  /** How many requests are open. */
  get size(): number {
    return this.#pending.size;
  }

  /**
   * To be called before admission, because the outcome may come before the admission's own reply.
   */
  expect(wait: Wait): Expected {
    const name = requestName(wait.address);
    const pending = this.#pending.get(name) ?? this.#open(name, wait);
    const { waiters } = pending;
    const admitted = (isRepeated: boolean) => {
      if (!isRepeated) pending.isAnsweredElsewhere = false;
      else if (!pending.admitted) {
        // The reply to a request that this gateway admitted before comes here.
        pending.isAnsweredElsewhere = true;
        if (this.#isOpen(pending)) this.#looks.wantSoon(pending);
      }
      pending.admitted = true;
    };
    let waiter: ((outcome: Outcome) => void) | undefined;
    const outcome = new Promise<Outcome>((resolve) => {
      waiter = resolve;
      waiters.add(resolve);
    });
    const forget = () => {
      if (waiter !== undefined) waiters.delete(waiter);
      if (waiters.size === 0) this.#drop(pending);
    };
    return { outcome, admitted, forget };
  }

  /** Takes one message that came on this gateway's subject. */
  receive(message: Buffer): void {
    const { replies, hasGap } = this.#inbox.receive(message);
    if (hasGap) {
      cells.add(this.#counts.gaps);
      this.lookAtAll();
    }
    passed("replied", replies, ({ name }) => name);
    for (const { name, kind, body } of replies) {
      const pending = this.#pending.get(name);
      if (pending === undefined) continue;
      if (kind === "look") this.#looks.wantSoon(pending);
      else {
        cells.add(this.#counts.byNats);
        this.#end(pending, readOutcome(kind, body));
      }
    }
  }

  /**
   * To be called when replies may have got lost: the gateway asks Redis about all open requests.
   */
  lookAtAll(): void {
    this.#looks.wantAll();
  }

  /** Looks into Redis if it must, and ends overdue requests, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { redis } = this.#settings;
    // A Redis that comes back may be another server, without the data that Redis had acknowledged.
    // A Cluster's client emits `+node` when it finds another server.
    const onReady = () => this.lookAtAll();
    redis.on("ready", onReady).on("+node", onReady);
    // The loops run apart, so that deadlines do not wait for looks, however many there are.
    await Promise.all([this.#lookWhileOpen(signal), this.#readNotesWhileOpen(signal), this.#expireWhileOpen(signal)]);
    redis.off("ready", onReady).off("+node", onReady);
    await this.#reader.idle();
  }

  /** Takes an outcome from Redis. */
  ended(pending: Pending, outcome: Outcome): void {
    if (this.#isOpen(pending)) cells.add(this.#counts.byRedis);
    this.#end(pending, outcome);
  }

  #end(pending: Pending, outcome: Outcome): void {
    this.#drop(pending);
    for (const resolve of pending.waiters) resolve(outcome);
  }

  stillOpen(pending: Pending): void {
    if (this.#isOpen(pending)) this.#looks.plan(pending, this.#settings.bus.isUp(), this.#lookedAt);
  }

  /** Redis came back empty, or the record was deleted. */
  lost(pending: Pending): void {
    if (this.#isOpen(pending)) this.#end(pending, outcomeOf(fixedError("request_lost", "entryGone")));
  }

  notRead(pending: Pending): void {
    this.#looks.planRetry(pending, this.#world.now());
  }

  #open(name: string, { ends, address, outcomeTtlMs, deadlineMs, queuedMs }: Wait): Pending {
    const openedAt = this.#world.now();
    ends?.waits(1);
    const pending = {
      ends,
      name,
      address,
      key: outcomeKey(address),
      outcomeTtlMs,
      openedAt,
      deadlineAt: openedAt + deadlineMs,
      queuedUntil: queuedMs === undefined ? undefined : openedAt + queuedMs,
      waiters: new Set<(outcome: Outcome) => void>(),
      admitted: false,
      isAnsweredElsewhere: false,
    };
    this.#pending.set(name, pending);
    this.#deadlines.set(pending, Math.min(pending.queuedUntil ?? Infinity, pending.deadlineAt));
    this.#looks.plan(pending, this.#settings.bus.isUp(), openedAt);
    return pending;
  }

  async #lookWhileOpen(signal: AbortSignal): Promise<void> {
    let restMs = TICK_MS;
    for (let before = this.#world.now(); !signal.aborted; before = this.#world.now()) {
      await delay(restMs, signal, this.#world);
      const now = this.#world.now();
      if (this.#hasBusChanged()) this.lookAtAll();
      // If this process was held up, messages may wait to be read, so it judges no worker.
      if (now - before - restMs < HELD_UP_MS && this.#inbox.hasSilence(now)) this.lookAtAll();
      this.#lookedAt = now;
      await this.#reader.look(this.#looks.takeDue(now));
      restMs = Math.min(Math.max(TICK_MS, this.#world.now() - now), MOST_REST_MS);
    }
  }

  /** Whether NATS has gone down or come back: messages from the time between are lost. */
  #hasBusChanged(): boolean {
    const { bus } = this.#settings;
    const before = this.#bus;
    this.#bus = { isUp: bus.isUp(), connections: bus.connections() };
    return before.isUp !== this.#bus.isUp || before.connections !== this.#bus.connections;
  }

  /** Reads which requests have ended at workers that do not reach NATS. */
  async #readNotesWhileOpen(signal: AbortSignal): Promise<void> {
    const { redis, bus, gateway } = this.#settings;
    while (!signal.aborted) {
      await delay(bus.isUp() ? NOTES_EVERY_MS.busUp : NOTES_EVERY_MS.busDown, signal, this.#world);
      if (this.size === 0) continue;
      try {
        const names = await redis.lpop(unpublishedKey(gateway), NOTES_AT_ONCE);
        for (const name of names ?? []) {
          const pending = this.#pending.get(name);
          if (pending !== undefined) this.#looks.wantSoon(pending);
        }
      } catch (error) {
        dropIfSilent(redis, error);
      }
    }
  }

  async #expireWhileOpen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal, this.#world);
      const due = this.#deadlines.takeDue(this.#world.now());
      for (const some of chunks(due, () => 0, { bytes: 0, items: EXPIRIES_AT_ONCE })) {
        if (signal.aborted) return;
        await Promise.all(some.map((pending) => this.#expire(pending)));
      }
    }
  }

  /** Ends a request whose deadline has passed. */
  async #expire(pending: Pending): Promise<void> {
    if (this.#world.now() < pending.deadlineAt) return this.#endInQueue(pending);
    const isTooLate = this.#world.now() >= pending.deadlineAt + GRACE_MS;
    try {
      const ended = await this.#expireInRedis(pending);
      if (ended !== undefined && this.#isOpen(pending)) this.#end(pending, ended);
    } catch (error) {
      dropIfSilent(this.#settings.redis, error);
    }
    if (!this.#isOpen(pending)) return;
    if (isTooLate) this.#end(pending, outcomeOf(fixedError("outcome_unknown", "unreadable")));
    else this.#deadlines.set(pending, this.#world.now() + TICK_MS);
  }

  /**
   * Ends a request that has waited in the queue for too long. A request that a worker has stays
   * with that worker, which begins no request behind its time, and gives the outcome by itself.
   */
  async #endInQueue(pending: Pending): Promise<void> {
    const { address, outcomeTtlMs } = pending;
    const expired = outcomeOf(fixedError("expired", "beforeResult"));
    let next = pending.deadlineAt;
    try {
      const given = await giveOutcomeInQueue(this.#settings.redis, address, storeOutcome(expired), outcomeTtlMs);
      if (given.said === "given") this.#expiredIn("queue", pending, given.version);
      if (given.said === "given" && this.#isOpen(pending)) this.#end(pending, expired);
      // The admission of the request is still under way.
      if (given.said === "unknown" && !pending.admitted) next = this.#world.now() + TICK_MS;
    } catch (error) {
      dropIfSilent(this.#settings.redis, error);
      next = this.#world.now() + TICK_MS;
    }
    if (this.#isOpen(pending)) this.#deadlines.set(pending, Math.min(next, pending.deadlineAt));
  }

  /**
   * Ends the request in Redis, unless Redis has an outcome by now, so that every gateway finds the
   * same outcome.
   * @returns undefined while the outcome is certain but not yet committed. Also undefined while
   * Redis may still admit the request: a request whose client got the error `expired` must not take
   * effect later. The caller then tries again soon.
   */
  async #expireInRedis(pending: Pending): Promise<Outcome | undefined> {
    const { address, outcomeTtlMs, admitted } = pending;
    const expired = outcomeOf(fixedError("expired", "beforeResult"));
    const given = await giveOutcome(this.#settings.redis, address, storeOutcome(expired), outcomeTtlMs);
    if (given.said === "sealed" || (given.said === "unknown" && !admitted)) return undefined;
    if (given.said === "given") this.#withdraw(pending, given.version);
    return given.said === "known" ? readKept(given.outcome.kind, given.outcome.body) : expired;
  }

  /** Takes a request that has ended out of the queue. No caller waits for that. */
  #withdraw(pending: Pending, version: string): void {
    const { redis } = this.#settings;
    withdraw(redis, pending.address)
      .catch((error: unknown) => dropIfSilent(redis, error))
      .then((said) => this.#expiredIn(said === "withdrawn" ? "queue" : "run", pending, version))
      .catch(() => undefined);
  }

  /** @param version of the model, as Redis has it: a step may be pinned to another than expected */
  #expiredIn(where: ExpiredIn, { address, openedAt }: Pending, version: string): void {
    endsAt(address, version).expired(where, this.#world.now() - openedAt);
  }

  #isOpen(pending: Pending): boolean {
    return this.#pending.get(pending.name) === pending;
  }

  #drop(pending: Pending): void {
    if (this.#isOpen(pending)) {
      this.#pending.delete(pending.name);
      pending.ends?.waits(-1);
    }
    this.#looks.remove(pending);
    this.#deadlines.delete(pending);
  }
}
