/**
 * Keeps how far the requests of tensor models have come between their runs. Answers go to the log
 * of the request and from there to the readers, as a generator's tokens do. Checkpoints lie beside
 * the log: an answer is in the log before the checkpoint behind it, so a worker that takes a
 * request over finds a checkpoint that is as old as the log or older. It runs the missing runs
 * again, and skips the answers that the log has.
 */
import type { Logger } from "pino";
import { outcomeOf, readOutcome, storeOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { laneKeys, runKey } from "#shared/queue/keys.js";
import type { Delivery } from "#shared/queue/entry.js";
import { sealedOutcome } from "#shared/queue/work/commit/sealed-outcome.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import { stillOpen } from "#shared/queue/work/read/still-open.js";
import { appendTokens, type Append, type Appended } from "#shared/queue/work/streams/append-tokens.js";
import { readProgress } from "#shared/queue/work/streams/read-progress.js";
import { retrying } from "#shared/retry.js";
import type { Held } from "../lane/holdings.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { Settled, Settler } from "../lane/settle.js";
import { spentOf } from "../lane/spent.js";
import { unchanged } from "../tensors/ends.js";
import { fromCheckpoint, type Again, type Resumed, type RunLog } from "../tensors/iterate.js";
import type { ServingModel } from "../tensors/serving.js";
import type { Published, TokenPublisher } from "./publisher.js";
import { errorRecord, sealed } from "./settlement.js";
import { marksCount, nobodyReads } from "./unread.js";

export interface RunLogParts {
  readonly queue: ModelQueue;
  readonly model: Pick<ServingModel, "decoupled" | "iteration" | "states" | "batching">;
  readonly settler: Settler;
  readonly publisher: TokenPublisher;
  readonly outageGuard: OutageGuard;
  readonly log: Logger;
}

/** How often the log asks whether a request that appends nothing still has to end, in ms. */
const LOOK_MS = 250;
/** How long a checkpoint lies in Redis after the last run of its request, in ms. */
const KEPT_MS = 600_000;

/** A request at this worker, whose runs the log has noted. */
interface Noted extends Published {
  takenOver: boolean;
  /** How many records the log has. */
  logged: number;
  /** The result that the log has already, from another worker. */
  sealed: StoredOutcome | undefined;
  hasCheckpoint: boolean;
  /** When Redis last said that the request still has to end, on `performance.now()`'s clock. */
  lookedAt: number;
  /** When the last answer came into the log, for figures. */
  answeredAt: number;
}

export class StoredRuns implements RunLog {
  readonly #parts: RunLogParts;
  readonly #noted = new WeakMap<Delivery, Noted>();
  /** Requests whose outcome Redis has; their commits only remove their entries. */
  readonly #ended = new WeakSet<Delivery>();

  constructor(parts: RunLogParts) {
    this.#parts = parts;
  }

  async goOn(requests: readonly Again[], surely = false): ReturnType<RunLog["goOn"]> {
    const now = performance.now();
    const fresh = requests.filter(({ held, answer }) => answer !== undefined && this.#lacks(held));
    const silent = requests.filter(
      (one) => !fresh.includes(one) && now - this.#of(one.held.delivery).lookedAt >= LOOK_MS,
    );
    const [appended, looked] = await Promise.all([
      this.#append(
        fresh.map(({ held, answer = "" }) => ({ of: this.#of(held.delivery), record: answer, final: false })),
      ),
      this.#look(silent.map(({ held }) => held.delivery)),
    ]);
    const words = new Map<Again, Appended>();
    for (const [i, one] of fresh.entries()) words.set(one, appended[i] ?? "lost");
    for (const [i, one] of silent.entries()) words.set(one, looked[i] ?? "lost");
    const again: Held[] = [];
    const ended: Settled[] = [];
    for (const one of requests) {
      const settled = this.#endOf(one.held, words.get(one) ?? "appended");
      if (settled === "lost") continue;
      if (settled !== undefined) ended.push(settled);
      else {
        if (surely) await this.#progressed(one);
        else this.#keep(one);
        again.push(one.held);
      }
    }
    return { again, ended };
  }

  async resume(held: Held): Promise<Resumed> {
    const { queue, model } = this.#parts;
    const { delivery } = held;
    const [checkpoint, { state, records }] = await Promise.all([
      this.#retrying(() => queue.redis.getBuffer(runKey(delivery))),
      model.decoupled === true ? this.#progressOf(delivery) : this.#stateOf(delivery),
    ]);
    const noted = this.#of(delivery);
    noted.takenOver = true;
    noted.logged = records.length;
    noted.hasCheckpoint = checkpoint !== null;
    if (state === "ended") return { kind: "settle", settled: this.#acknowledged(held) };
    if (state === "sealed") {
      const outcome = sealedOutcome(records);
      if (outcome.kind === "error" || delivery.sequence === undefined) {
        this.#ended.add(delivery);
        return { kind: "settle", settled: sealed(held, records, undefined) };
      }
      // The state went with its worker, so the step of a sequence runs again for the state alone.
      noted.sealed = outcome;
    }
    const from = checkpoint === null ? held : this.#from(held, checkpoint);
    return { kind: "run", held: from, logged: records.length };
  }

  async end(settled: readonly Settled[]): Promise<readonly Settled[]> {
    const { model, publisher } = this.#parts;
    if (model.decoupled !== true) return settled;
    const known = settled.filter(({ delivery }) => this.#ended.has(delivery));
    const others = settled.filter((one) => !known.includes(one));
    const open = others.filter(({ delivery }) => this.#of(delivery).sealed === undefined);
    const said = await this.#append(
      open.map((one) => {
        const of = this.#of(one.delivery);
        return { of, record: finalRecord(one, of.logged), final: true };
      }),
    );
    const ends = others.flatMap((one): Settled[] => {
      const { sealed: outcome } = this.#of(one.delivery);
      if (outcome !== undefined) return [{ ...one, outcome }];
      const word = said[open.indexOf(one)] ?? "lost";
      if (word === "lost") return [];
      return [word === "gap" && one.outcome.kind === "result" ? { ...one, outcome: lostLog() } : one];
    });
    await Promise.all(ends.map(({ delivery }) => publisher.complete(this.#of(delivery))));
    return [...known, ...ends];
  }

  forget(settled: readonly Settled[]): void {
    const { redis } = this.#parts.queue;
    for (const { delivery } of settled) {
      if (this.#noted.get(delivery)?.hasCheckpoint === true) redis.unlink(runKey(delivery)).catch(() => undefined);
      this.#noted.delete(delivery);
    }
  }

  #of(delivery: Delivery): Noted {
    let noted = this.#noted.get(delivery);
    if (noted === undefined) {
      const now = performance.now();
      const facts = { takenOver: false, logged: 0, sealed: undefined, hasCheckpoint: false };
      noted = { held: { delivery }, labels: [], ...facts, lookedAt: now, answeredAt: now };
      this.#noted.set(delivery, noted);
    }
    return noted;
  }

  /** Whether the log has no record yet of the last answer. */
  #lacks({ delivery, before }: Held): boolean {
    const { logged, sealed: outcome } = this.#of(delivery);
    return outcome === undefined && logged < before.answers;
  }

  /** Asks about requests that append nothing. */
  async #look(deliveries: readonly Delivery[]): Promise<Appended[]> {
    const { queue, outageGuard } = this.#parts;
    const said = await this.#retrying(() => stillOpen(queue.redis, deliveries));
    const mayBeUnread = marksCount(outageGuard);
    return said.map((word, i) => {
      const delivery = deliveries[i];
      if (delivery !== undefined) this.#of(delivery).lookedAt = performance.now();
      return word === "open" || (word === "unwanted" && !mayBeUnread) ? "appended" : word;
    });
  }

  async #stateOf(delivery: Delivery): Promise<Progress> {
    const [word] = await this.#retrying(() => stillOpen(this.#parts.queue.redis, [delivery]));
    return { state: word === "ended" ? "ended" : "open", records: [] };
  }

  async #progressOf(delivery: Delivery): Promise<Progress> {
    const [progress] = await this.#retrying(() => readProgress(this.#parts.queue.redis, [delivery]));
    return progress ?? { state: "ended", records: [] };
  }

  /** A damaged checkpoint costs the runs before it, and no more. */
  #from(held: Held, checkpoint: Buffer): Held {
    try {
      return fromCheckpoint(held, checkpoint, this.#parts.model);
    } catch (error) {
      this.#parts.log.warn({ request: held.delivery.request, error: String(error) }, "a checkpoint is damaged");
      return held;
    }
  }

  /** @returns how the request ends; undefined if it runs again, `lost` if it is another worker's */
  #endOf(held: Held, word: Appended): Settled | undefined | "lost" {
    switch (word) {
      case "appended":
        return undefined;
      case "lost":
        return "lost";
      case "ended":
        return this.#acknowledged(held);
      case "unwanted":
        return stopped(held, nobodyReads());
      case "gap":
        return stopped(held, fixedError("request_lost", "logGone"));
    }
  }

  #acknowledged(held: Held): Settled {
    this.#ended.add(held.delivery);
    return stopped(held, fixedError("cancelled", "alreadyEnded"));
  }

  /**
   * Keeps a checkpoint, and then clears the count of the runs alone, because the request has come
   * further than at its last worker. A full Redis takes no checkpoint: then the count stands, and
   * the request goes on all the same.
   */
  async #progressed({ held: { delivery }, checkpoint }: Again): Promise<void> {
    const { redis } = this.#parts.queue;
    if (checkpoint !== undefined) {
      this.#of(delivery).hasCheckpoint = true;
      try {
        await redis.set(runKey(delivery), checkpoint, "PX", KEPT_MS);
      } catch (error) {
        this.#notKept(error);
        return;
      }
    }
    await this.#retrying(() => redis.hdel(laneKeys(delivery.lane).runs, delivery.entry));
  }

  /**
   * Without an answer from Redis the checkpoint is only missing, so no run waits for it. A request
   * that may have ended its worker gets one at each run: so it comes to its last run alone.
   */
  #keep({ held, checkpoint }: Again): void {
    const { queue, model } = this.#parts;
    if (checkpoint === undefined) return;
    const noted = this.#of(held.delivery);
    if (!noted.takenOver && held.before.runs % (model.iteration?.every ?? 1) !== 0) return;
    noted.hasCheckpoint = true;
    queue.redis.set(runKey(held.delivery), checkpoint, "PX", KEPT_MS).catch((error: unknown) => this.#notKept(error));
  }

  #notKept(error: unknown): void {
    this.#parts.log.debug({ error: String(error) }, "a checkpoint between two runs was not kept");
  }

  async #append(records: readonly NewRecord[]): Promise<Appended[]> {
    const { queue, publisher, outageGuard, settler } = this.#parts;
    if (records.length === 0) return [];
    const appends = records.map(({ of, record, final }): Append => {
      const { lane, entry, tenant, request } = of.held.delivery;
      return { lane, entry, tenant, request, first: of.logged, records: [record], final };
    });
    const said = await this.#retrying(() => appendTokens(queue, appends, { heedWanted: marksCount(outageGuard) }));
    const now = performance.now();
    for (const [i, { of, record, final }] of records.entries()) {
      if (said[i] !== "appended") continue;
      const first = of.logged++;
      settler.counts?.report.responded(first, howOf(record), now - of.answeredAt);
      of.lookedAt = now;
      of.answeredAt = now;
      publisher.publish(of, first, [record], final);
    }
    return said;
  }

  #retrying<T>(call: () => Promise<T>): Promise<T> {
    const { patienceMs: budgetMs, world } = this.#parts.settler;
    return retrying(call, { budgetMs, world });
  }
}

interface NewRecord {
  readonly of: Noted;
  readonly record: string;
  readonly final: boolean;
}

interface Progress {
  readonly state: "open" | "sealed" | "ended";
  readonly records: readonly string[];
}

/** The last record of a request. A result is its own record. */
function finalRecord({ outcome: { kind, body } }: Settled, index: number): string {
  const outcome = readOutcome(kind, body);
  if (outcome.kind === "result") return body.toString();
  return errorRecord(index, new InferenceError(outcome.code, outcome.message));
}

/** The outcome of a result whose log is gone. */
function lostLog(): StoredOutcome {
  return storeOutcome(outcomeOf(fixedError("request_lost", "logGone")));
}

/** The end of a request between two runs. */
function stopped(held: Held, error: InferenceError): Settled {
  return { ...unchanged(held, error), spent: spentOf(held, 0, 0) };
}

/** How a record counts. The members of a record with an error come in this order. */
function howOf(record: string): "success" | "fail" | "cancel" {
  if (record.includes('"final":true,"reason":"cancelled"')) return "cancel";
  return record.includes('"final":true,"reason":"e') ? "fail" : "success";
}
