/**
 * Keeps how far the requests of tensor models have come between their runs. Answers go to the log
 * of the request and from there to the readers, as a generator's tokens do. Checkpoints lie beside
 * the log: an answer is in the log before the checkpoint behind it, so a worker that takes a
 * request over finds a checkpoint that is as old as the log or older. It runs the missing runs
 * again, and skips the answers that the log has.
 */
import type { Logger } from "pino";
import { openCheckpoint } from "#shared/contract/checkpoint.js";
import { outcomeOf, readOutcome, storeOutcome } from "#shared/contract/outcome.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { laneKeys, runKey } from "#shared/queue/keys.js";
import type { Delivery } from "#shared/queue/entry.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import { stillOpen } from "#shared/queue/work/read/still-open.js";
import { appendTokens, type Append, type Appended } from "#shared/queue/work/streams/append-tokens.js";
import { readProgress } from "#shared/queue/work/streams/read-progress.js";
import { retrying } from "#shared/retry.js";
import type { Held } from "../lane/holdings.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import type { Settled, Settler } from "../lane/settle.js";
import { unchanged } from "../tensors/execute.js";
import { fromCheckpoint, type Again, type Resumed, type RunLog } from "../tensors/iterate.js";
import type { ServingModel } from "../tensors/serving.js";
import type { Published, TokenPublisher } from "./publisher.js";
import { errorRecord, sealed } from "./settlement.js";
import { marksCount, nobodyReads } from "./unread.js";

export interface RunLogParts {
  readonly queue: ModelQueue;
  readonly model: ServingModel;
  readonly settler: Settler;
  readonly publisher: TokenPublisher;
  readonly outageGuard: OutageGuard;
  readonly log: Logger;
}

/** How often the log asks whether a request that appends nothing still has to end, in ms. */
const LOOK_MS = 250;
/** How long a checkpoint lies in Redis after the last run of its request, in ms. */
const KEPT_MS = 600_000;
/** Most bytes of all answers to one request, in base64. Redis keeps them until the log goes. */
const MOST_ANSWER_BYTES = 16 << 20;

/** A request at this worker, whose runs the log has noted. */
interface Noted extends Published {
  takenOver: boolean;
  /** How many records the log has. */
  logged: number;
  /** The bytes of the answers from here. */
  bytes: number;
  /** When Redis last said that the request still has to end, on `performance.now()`'s clock. */
  lookedAt: number;
  hasCheckpoint: boolean;
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
    const { queue } = this.#parts;
    const words = new Map<Again, Appended>();
    const fresh = requests.filter(({ held, answer }) => answer !== undefined && this.#of(held).logged < held.answered);
    const now = performance.now();
    const silent = requests.filter((one) => !fresh.includes(one) && now - this.#of(one.held).lookedAt >= LOOK_MS);
    await Promise.all([
      this.#append(fresh.map((one) => ({ of: this.#of(one.held), record: one.answer ?? "", final: false }))).then(
        (said) => fresh.forEach((one, i) => words.set(one, said[i] ?? "lost")),
      ),
      this.#retrying(() => stillOpen(queue.redis, silent.map(deliveryOf))).then((said) => {
        for (const [i, one] of silent.entries()) {
          this.#of(one.held).lookedAt = now;
          words.set(one, said[i] === "open" ? "appended" : (said[i] ?? "lost"));
        }
      }),
    ]);
    const again: Held[] = [];
    const ended: Settled[] = [];
    for (const one of requests) {
      const settled = this.#endOf(one.held, words.get(one) ?? "appended");
      if (settled === "lost") continue;
      if (settled !== undefined) ended.push(settled);
      else {
        this.#keep(one, surely);
        again.push(one.held);
      }
    }
    return { again, ended };
  }

  async resume(held: Held): Promise<Resumed> {
    const { queue, model } = this.#parts;
    const { delivery } = held;
    const [checkpoint, [word], progress] = await Promise.all([
      this.#retrying(() => queue.redis.getBuffer(runKey(delivery))),
      this.#retrying(() => stillOpen(queue.redis, [delivery])),
      model.decoupled === true ? this.#retrying(() => readProgress(queue.redis, [delivery])) : [],
    ]);
    const { state, records = [] } = progress[0] ?? {};
    const noted = this.#of(held);
    noted.takenOver = true;
    noted.logged = records.length;
    noted.hasCheckpoint = checkpoint !== null;
    if (word === "ended") return { kind: "settle", settled: this.#acknowledged(held) };
    if (state === "sealed" && delivery.sequence === undefined) {
      this.#ended.add(delivery);
      return { kind: "settle", settled: sealed(held, records, undefined) };
    }
    return { kind: "run", held: checkpoint === null ? held : this.#from(held, checkpoint) };
  }

  async hasProgressed({ delivery: { lane, entry } }: Held): Promise<void> {
    const { redis } = this.#parts.queue;
    await this.#retrying(() => redis.hdel(laneKeys(lane).runs, entry));
  }

  async end(settled: readonly Settled[]): Promise<readonly Settled[]> {
    const { model, publisher } = this.#parts;
    if (model.decoupled !== true) return settled;
    const open = settled.filter(({ delivery }) => !this.#ended.has(delivery));
    const said = await this.#append(
      open.map((one) => {
        const of = this.#noted.get(one.delivery) ?? this.#note(one.delivery);
        return { of, record: finalRecord(one, of.logged), final: true };
      }),
    );
    const ends = open.flatMap((one, i): Settled[] => {
      const word = said[i] ?? "lost";
      if (word === "lost") return [];
      if (word !== "gap") return [one];
      return [{ ...one, ...lostLog(one) }];
    });
    const publications = ends.map(({ delivery }) =>
      publisher.complete(this.#noted.get(delivery) ?? this.#note(delivery)),
    );
    await Promise.all(publications);
    return [...settled.filter(({ delivery }) => this.#ended.has(delivery)), ...ends];
  }

  forget(settled: readonly Settled[]): void {
    const { redis } = this.#parts.queue;
    for (const { delivery } of settled) {
      if (this.#noted.get(delivery)?.hasCheckpoint === true) redis.unlink(runKey(delivery)).catch(() => undefined);
      this.#noted.delete(delivery);
    }
  }

  #of({ delivery }: Pick<Held, "delivery">): Noted {
    return this.#noted.get(delivery) ?? this.#note(delivery);
  }

  #note(delivery: Delivery): Noted {
    const noted: Noted = {
      held: { delivery },
      labels: [],
      takenOver: false,
      logged: 0,
      bytes: 0,
      lookedAt: performance.now(),
      hasCheckpoint: false,
    };
    this.#noted.set(delivery, noted);
    return noted;
  }

  /** A damaged checkpoint costs the runs before it, and no more. */
  #from(held: Held, checkpoint: Buffer): Held {
    try {
      openCheckpoint(checkpoint);
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
        return this.#of(held).bytes > MOST_ANSWER_BYTES ? unchanged(held, tooLong()) : undefined;
      case "lost":
        return "lost";
      case "ended":
        return this.#acknowledged(held);
      case "unwanted":
        return unchanged(held, nobodyReads());
      case "gap":
        return unchanged(held, fixedError("request_lost", "logGone"));
    }
  }

  #acknowledged(held: Held): Settled {
    this.#ended.add(held.delivery);
    return unchanged(held, fixedError("cancelled", "alreadyEnded"));
  }

  /** Without an answer from Redis the checkpoint is only missing, so nobody waits for it. */
  #keep({ held, checkpoint }: Again, surely: boolean): void {
    const { queue, model, log } = this.#parts;
    if (!surely && held.ran % (model.iteration?.every ?? 1) !== 0) return;
    this.#of(held).hasCheckpoint = true;
    queue.redis.set(runKey(held.delivery), checkpoint, "PX", KEPT_MS).catch((error: unknown) => {
      log.debug({ error: String(error) }, "a checkpoint between two runs was not kept");
    });
  }

  async #append(records: readonly { readonly of: Noted; readonly record: string; readonly final: boolean }[]) {
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
      of.bytes += record.length;
      settler.counts?.report.responded(first, record.includes('"error":{') ? "fail" : "success", now - of.lookedAt);
      of.lookedAt = now;
      publisher.publish(of, first, [record], final);
    }
    return said;
  }

  #retrying<T>(call: () => Promise<T>): Promise<T> {
    const { patienceMs: budgetMs, world } = this.#parts.settler;
    return retrying(call, { budgetMs, world });
  }
}

function deliveryOf({ held }: Again): Delivery {
  return held.delivery;
}

/** The last record of a request. A result is its own record. */
function finalRecord({ outcome: { kind, body } }: Settled, index: number): string {
  const outcome = readOutcome(kind, body);
  if (outcome.kind === "result") return body.toString();
  return errorRecord(index, new InferenceError(outcome.code, outcome.message));
}

function lostLog(settled: Settled): Pick<Settled, "outcome"> {
  const error = fixedError("request_lost", "logGone");
  return settled.outcome.kind === "error" ? settled : { outcome: storeOutcome(outcomeOf(error)) };
}

function tooLong(): InferenceError {
  return new InferenceError("model_error", `the answers to the request exceed ${MOST_ANSWER_BYTES} bytes`);
}
