/**
 * A generator's scheduling loop: look into what has come, ask the engine for the next iteration, hand its records on. The engine computes the next iteration while
 * this thread handles the last one's records and Redis takes the ones before, and waits when Redis falls behind.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { expiredMessages } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { RedisClock } from "#shared/redis/clock.js";
import { retrying } from "#shared/retry.js";
import type { Settler } from "../batch/settle.js";
import type { Solitude } from "../batch/solitude.js";
import type { Hand, Held } from "../intake/hand.js";
import type { Steadiness } from "../intake/steadiness.js";
import { beginAlone } from "../queue/begin-alone.js";
import type { StreamQueue } from "../queue/lane.js";
import type { Takeover } from "../queue/take-over.js";
import { activate, expiryOf, type Active, type Prepared } from "./active.js";
import { Committer } from "./committer.js";
import { inspect } from "./inspect.js";
import { prepareAll } from "./prepare.js";
import type { Iteration, NewGeneration } from "./protocol.js";
import type { ServingGenerator } from "./serving.js";
import { slotsFor } from "./slots.js";
import { sealed, succeed } from "./settlement.js";
import { Returning, type Returned } from "./returning.js";
import { Takeovers } from "./takeovers.js";
import { nobodyReads } from "./wanted.js";

export interface GeneratorParts {
  readonly queue: StreamQueue;
  readonly model: ServingGenerator;
  readonly hand: Hand;
  readonly settler: Settler;
  readonly clock: RedisClock;
  readonly steadiness: Steadiness;
  /** Of all lanes of this process. */
  readonly solitude: Solitude;
  readonly maxRunsAlone: number;
  readonly log: Logger;
}

/** Iterations that may wait for Redis; past that the engine pauses, so a slow Redis slows the streams instead of filling memory. */
const MOST_LAG = 8;
/** Iterations asked for at a time: the engine finds the next question when it has answered one, and does not wait for this thread to come to it. */
const ASKED_AHEAD = 2;
const LAG_WAIT_MS = 1_000;
const INSPECT_MS = 1_000;
/** Suspects run one after the other for so long before the others get their next tokens: many are innocent, and each has a reader who waits. */
const ALONE_TURN_MS = 100;

export class GeneratorLoop {
  readonly #parts: GeneratorParts;
  readonly #committer: Committer;
  /** By entry: everything that came and has not gone. */
  readonly #actives = new Map<string, Active>();
  /** Entries that the engine has. */
  readonly #inEngine = new Set<string>();
  readonly #suspects: Returned[] = [];
  readonly #returning: Returning;
  readonly #takeovers: Takeovers;
  /** How long suspects have run since the others last had an iteration, in ms. */
  #aloneMs = 0;
  /** When requests that append nothing are looked at next. */
  #inspectAt = 0;

  constructor(parts: GeneratorParts) {
    this.#parts = parts;
    const { queue, settler, steadiness, hand, log } = parts;
    this.#takeovers = new Takeovers(log);
    this.#returning = new Returning({ queue, log, turn: (one, verdict) => this.#turn(one, verdict) });
    this.#committer = new Committer({
      queue,
      settler,
      steadiness,
      log,
      closed: ({ held }) => this.#leave(held.delivery.entry),
      gone: ({ held }) => {
        this.#actives.delete(held.delivery.entry);
        this.#takeovers.end(held.delivery.entry, performance.now());
        hand.drop([held.delivery.entry]);
        hand.arrived.notify();
      },
    });
  }

  /** Choices that this worker is busy with. */
  get used(): number {
    let used = 0;
    for (const { spec } of this.#actives.values()) used += spec.sampling.choices;
    return used;
  }

  /** What is in the engine when `signal` aborts stops at a committed token; its entries stay in the hand. */
  async run(signal: AbortSignal): Promise<void> {
    const { hand, model, solitude } = this.#parts;
    /** What the engine has been asked for, oldest first. */
    const asked: Promise<Iteration>[] = [];
    const askAhead = () => {
      const goesOn = () => this.#inEngine.size > 0 && this.#suspects.length === 0 && !signal.aborted;
      while (goesOn() && asked.length < ASKED_AHEAD && this.#committer.lag + asked.length < MOST_LAG) {
        asked.push(solitude.share(() => model.host.iterate()));
      }
    };
    const hearNext = async () => {
      const iteration = await asked.shift();
      this.#aloneMs = 0;
      askAhead();
      if (iteration !== undefined) this.#hear(iteration);
    };
    while (!signal.aborted) {
      const now = performance.now();
      this.#take(hand.suspects, "suspect", now);
      this.#take(hand.waiting, "fresh", now);
      this.#expire(now);
      if (now >= this.#inspectAt) this.#inspect(now);
      const othersTurn = this.#inEngine.size > 0 && this.#aloneMs >= ALONE_TURN_MS;
      const suspect = asked.length > 0 || othersTurn ? undefined : this.#suspects.shift();
      if (asked.length > 0) {
        await hearNext();
      } else if (suspect !== undefined) {
        await solitude.alone(() => this.#runAlone(suspect, signal));
        this.#aloneMs += performance.now() - now;
      } else if (this.#inEngine.size === 0) {
        await hand.arrived.wait(this.#nextDeadline());
      } else if (this.#committer.lag >= MOST_LAG) {
        await this.#committer.caughtUp.wait(now + LAG_WAIT_MS);
      } else {
        asked.push(solitude.share(() => model.host.iterate()));
        askAhead();
        await hearNext();
      }
    }
    while (asked.length > 0) await hearNext();
    await this.#committer.drained();
  }

  /** What is past its deadline is looked into at once: it ends, unless its log has a token. */
  #take(held: readonly Held[], how: "fresh" | "suspect", now: number): void {
    const { hand } = this.#parts;
    const chosen: Active[] = [];
    const most = slotsFor(how, this.#parts.model.slots);
    for (const one of held) {
      if (this.used >= most && one.expiresAt > now) continue;
      const active = activate(one, how);
      this.#actives.set(one.delivery.entry, active);
      chosen.push(active);
    }
    if (chosen.length === 0) return;
    if (how === "suspect") this.#takeovers.begin(entriesOf(chosen), now);
    hand.take(chosen.map((active) => active.held));
    prepareAll(this.#parts, chosen, (active, prepared) => this.#prepared(active, prepared)).catch((error: unknown) =>
      this.#parts.log.error({ error: String(error) }, "requests could not be looked into"),
    );
  }

  #prepared(active: Active, prepared: Prepared): void {
    const { hand } = this.#parts;
    const { held } = active;
    if (active.closed) return;
    switch (prepared.kind) {
      case "drop":
        active.closed = true;
        this.#leave(held.delivery.entry);
        this.#actives.delete(held.delivery.entry);
        this.#takeovers.end(held.delivery.entry, performance.now());
        hand.drop([held.delivery.entry]);
        return hand.arrived.notify(); // somebody may wait for its slots
      case "ended":
        return this.#committer.acknowledge(active);
      case "sealed":
        return this.#committer.settle(active, sealed(held, prepared.records, prepared.history));
      case "refuse":
        active.next = prepared.next;
        return this.#fail(active, prepared.error);
      case "run": {
        const { generation, standsSince } = prepared;
        active.next = generation.next;
        this.#takeovers.prepared(generation);
        if (active.how === "suspect") return this.#returning.add({ active, generation, standsSince });
        this.#join(generation);
        hand.arrived.notify();
      }
    }
  }

  /** Of a stream that was another worker's. */
  #turn(one: Returned, verdict: Takeover): void {
    if (verdict === "lost") return this.#prepared(one.active, { kind: "drop" });
    if (verdict === "ended") return this.#prepared(one.active, { kind: "ended" });
    if (verdict === "alone") this.#suspects.push(one);
    else this.#join(one.generation);
    this.#parts.hand.arrived.notify();
  }

  #join(generation: NewGeneration): void {
    this.#inEngine.add(generation.key);
    this.#parts.model.host.add(generation);
  }

  #hear({ steps, failed }: Iteration): void {
    for (const { key, index, record, final, history } of steps) {
      const active = this.#actives.get(key);
      // A record of an earlier stay of an entry that left and came back is another index, or the very same record.
      if (active === undefined || active.closed || index !== active.next) continue;
      active.next = index + 1;
      active.heardAt = performance.now();
      this.#takeovers.end(key, active.heardAt);
      this.#returning.end(key);
      if (final) {
        active.closed = true;
        this.#inEngine.delete(key);
        const outcome = { kind: "result", body: Buffer.from(record) } as const;
        this.#committer.push(active, index, record, succeed(active.held, outcome, history));
      } else {
        this.#committer.push(active, index, record);
      }
    }
    for (const { key, reason } of failed) {
      const active = this.#actives.get(key);
      this.#inEngine.delete(key);
      if (active !== undefined && !active.closed) {
        this.#committer.fail(active, active.next, new InferenceError("model_error", `onnx runtime error: ${reason}`));
      }
    }
    this.#committer.flush();
  }

  /** The first new token of a request that ended its last worker without making any: nothing else computes meanwhile. */
  async #runAlone({ active, generation }: Returned, signal: AbortSignal): Promise<void> {
    const { queue, model, settler, maxRunsAlone, log } = this.#parts;
    const { entry, request } = active.held.delivery;
    if (active.closed) return;
    let verdict: "run" | "poison" | "lost";
    const run = randomUUID();
    try {
      verdict = await retrying(() => beginAlone(queue, entry, maxRunsAlone, run), { budgetMs: settler.budgetMs });
    } catch (error) {
      log.warn({ error: String(error) }, "a suspect was left to another worker");
      verdict = "lost";
    }
    if (verdict === "lost") return this.#prepared(active, { kind: "drop" });
    if (verdict === "poison") {
      log.error({ request }, "request set aside");
      const error = new InferenceError("poison_request", "the request was set aside: no worker that ran it came back");
      this.#fail(active, error);
      // The next one may end this process: what has been decided must stand by then.
      return this.#committer.drained();
    }
    this.#join(generation);
    while (!active.closed && active.next === generation.next && !signal.aborted) {
      this.#expire(performance.now());
      this.#hear(await model.host.iterate(entry));
    }
    await this.#committer.drained();
  }

  #expire(now: number): void {
    for (const active of this.#actives.values()) {
      const known = active.next >= 0;
      if (known && !active.closed && expiryOf(active) <= now) {
        const { beforeFirstToken, beforeEnd } = expiredMessages;
        this.#fail(active, new InferenceError("expired", active.next > 0 ? beforeEnd : beforeFirstToken));
      }
    }
  }

  #inspect(now: number): void {
    this.#inspectAt = now + INSPECT_MS;
    const silent = [...this.#actives.values()].filter(
      ({ closed, next, heardAt }) => !closed && next >= 0 && now - heardAt >= INSPECT_MS,
    );
    if (silent.length === 0) return;
    inspect(this.#parts, silent).then(
      ({ ended, unwanted }) => {
        for (const active of ended) if (!active.closed) this.#committer.acknowledge(active);
        for (const active of unwanted) if (!active.closed) this.#fail(active, nobodyReads());
      },
      (error: unknown) => this.#parts.log.debug({ error: String(error) }, "requests could not be inspected"),
    );
  }

  #fail(active: Active, error: InferenceError): void {
    this.#committer.fail(active, active.next, error);
    this.#committer.flush();
  }

  #leave(entry: string): void {
    this.#returning.end(entry);
    if (this.#inEngine.delete(entry)) this.#parts.model.host.remove(entry);
  }

  #nextDeadline(): number {
    // One that is still being looked into cannot be ended yet, and notifies when it can.
    const known = [...this.#actives.values()].filter(({ closed, next }) => !closed && next >= 0);
    if (known.length === 0) return Infinity;
    return Math.min(this.#inspectAt, ...known.map(expiryOf));
  }
}

function entriesOf(actives: readonly Active[]): string[] {
  return actives.map(({ held }) => held.delivery.entry);
}
