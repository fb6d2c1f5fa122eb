/**
 * The work on a tensor model's lanes, in micro-batches: asks the plan for the next move, makes the
 * move, and settles. The model waits neither for Redis nor for the main thread: a batch settles
 * while the next batch runs, and a full batch is staged behind the batch that runs.
 */
import { fixedError } from "#shared/errors.js";
import type { Delivery } from "#shared/queue/entry.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { within } from "#shared/retry.js";
import { passed } from "#shared/stages.js";
import type { Alone } from "../lane/alone.js";
import type { Exclusive } from "../lane/exclusive.js";
import type { Closing, ModelCounts } from "../lane/counts.js";
import type { Batching, Held } from "../lane/holdings.js";
import type { LaneContext, LaneWork } from "../lane/lane.js";
import { nameOf, type Settled } from "../lane/settle.js";
import { Begin } from "./begin.js";
import { begun, type Again, type RunLog } from "./iterate.js";
import { Calls } from "./calls.js";
import { expired, failed } from "./ends.js";
import { execute, type ExecuteLimits, type Execution } from "./execute.js";
import { leastBusy, moveBeside, planBatch } from "./plan.js";
import { Settling } from "./settling.js";
import { beginSuspect, type SuspectSettings } from "./suspects.js";
import type { ServingModel } from "./serving.js";

export interface TensorWorkSettings extends SuspectSettings {
  readonly limits: ExecuteLimits;
  /** Shared by all lanes of this process. */
  readonly exclusive: Exclusive;
}

/** A batch that the model's thread has, or gets as soon as its states are there. */
interface Posted {
  readonly batch: readonly Held[];
  readonly closedBy: Closing;
  readonly begin: Begin;
  /** The requests that are to run again, once `settlements` has run. */
  readonly again: readonly Again[];
  /** Whether the main thread knows that the batch has begun. */
  hasBegun: boolean;
  /** Undefined until the batch has run. */
  execution: Execution | undefined;
  failure: unknown;
}

/** A session of the model, on a thread of its own. */
interface Instance {
  readonly model: ServingModel;
  /** The batches of the thread: the batch that runs, and the staged batch. */
  readonly posted: Posted[];
}

const WAIT = { kind: "wait", until: Infinity } as const;
/** Suspects run one after the other, so a worker takes few at a time. */
const SUSPECTS_AT_ONCE = 16;
/**
 * Most batches that settle at once, and one more for each further instance. Beyond that the loop
 * waits, so that a slow Redis slows the intake instead of filling the memory.
 */
const SETTLING_AT_ONCE = 2;
/**
 * How long a batch that ran waits until the model has the next batch, in ms. To make settlements
 * takes time, in which the model would have no work. The states of the next batch may still come
 * from Redis, and then the settlements do not wait for them.
 */
const POST_MS = 2;

export class TensorWork implements LaneWork {
  readonly #model: ServingModel;
  readonly #context: LaneContext;
  readonly #settings: TensorWorkSettings;
  readonly #settling: Settling;
  /** Requests between two runs, whose last runs are on their way to Redis. */
  readonly #going = new Set<Promise<void>>();
  /** The last batch that ran, until the loop turns it into settlements. */
  #ran: (Pick<Posted, "batch" | "again"> & { readonly execution: Execution }) | undefined;
  readonly #instances: readonly Instance[];
  readonly #calls = new Calls();
  /** Undefined for a model that runs once for each request, and answers once. */
  readonly #runs: RunLog | undefined;

  constructor(model: ServingModel, context: LaneContext, settings: TensorWorkSettings) {
    this.#model = model;
    this.#instances = [model, ...(model.others ?? []).map((host) => ({ ...model, host }))].map((one) => ({
      model: one,
      posted: [],
    }));
    this.#context = context;
    this.#runs = settings.runs;
    this.#settling = new Settling(context, settings.runs);
    this.#settings = { ...settings, limits: { ...settings.limits, counts: context.counts.batches } };
  }

  get counts(): ModelCounts {
    return this.#context.counts;
  }

  get batching(): Batching {
    return this.#model.batching;
  }

  /**
   * For each instance, at most one full batch waits while another runs. With `candidates`, steps of
   * at most that many sequences wait or run. Requests that run again need no second batch: they
   * would keep it waiting here, while other workers have room.
   */
  room(): number {
    const { limits, candidates, iteration } = this.#model;
    const { holdings } = this.#context;
    const most = Math.max(1, limits.maxBatchSize) * this.#instances.length;
    // The calls of ensembles take no room: a request that comes after them waits behind them.
    const staged = this.#instances.flatMap(({ posted }) => posted[1]?.batch ?? []).filter(isOfLane).length;
    const room = most - (iteration === undefined ? holdings.waiting.length + staged : holdings.size);
    return candidates === undefined ? room : Math.min(room, candidates - holdings.size);
  }

  suspectRoom(): number {
    return SUSPECTS_AT_ONCE - this.#context.holdings.suspects.length;
  }

  /**
   * A model with sequences takes steps of sequences. Other models take requests without a sequence,
   * and an iterative model takes both.
   */
  accepts({ sequence }: Delivery): boolean {
    const { maxIdleMs, iteration } = this.#model;
    return sequence === undefined ? maxIdleMs === undefined || iteration !== undefined : maxIdleMs !== undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { holdings, world } = this.#context;
    const instances = this.#instances;
    for (;;) {
      this.#collect();
      // Requests of the last batch share the next one with those that wait.
      if (this.#going.size > 0) await within(POST_MS, Promise.all(this.#going), world);
      const posted = instances.map((one) => one.posted.length);
      if (signal.aborted && posted.every((count) => count === 0)) break;
      const waiting = this.#calls.among(holdings.waiting);
      const plan = planBatch(waiting, this.#suspects(), world.now(), this.#model.limits, this.#busy());
      if (this.#takeBack(signal.aborted || plan.kind === "alone" || posted.includes(0))) continue;
      const move = signal.aborted ? WAIT : moveBeside(plan, posted);
      if (move.kind !== "run") this.#settleLastBatch();
      switch (move.kind) {
        case "wait":
          await holdings.arrived.wait(Math.min(move.until, this.#stagedUntil()));
          break;
        case "expire":
          this.#take(move.expired);
          this.#context.traces?.beginBatch(move.expired);
          void this.#settling.begin(move.expired.flatMap(expire));
          this.#callsLeft(move.expired);
          break;
        case "alone":
          holdings.take([move.suspect]);
          await this.#settings.exclusive.alone(() => this.#runAlone(move.suspect));
          break;
        case "run":
          if (move.lateMs !== undefined && move.batch.every(({ before }) => before.runs === 0))
            this.#context.counts.batches?.late(move.lateMs);
          await this.#post(instances[leastBusy(posted)] as Instance, move.batch, move.closedBy);
          break;
      }
    }
    this.#settleLastBatch();
    await this.#settling.all();
  }

  /**
   * A suspect that may have answers already expires no more. The gateway ends a request past its
   * deadline, and `resume` finds that end.
   */
  #suspects(): readonly Held[] {
    const { suspects } = this.#context.holdings;
    return this.#runs === undefined ? suspects : suspects.map(begun);
  }

  /** The sequences with a step under way, if that matters: a single thread takes turns anyway. */
  #busy(): ReadonlySet<string> | undefined {
    if (this.#instances.length === 1) return undefined;
    const held = this.#instances.flatMap(({ posted }) => posted.flatMap(({ batch }) => batch));
    return new Set(held.flatMap(({ sequence }) => sequence ?? []));
  }

  /** When the first step of a staged batch expires; Infinity if all batches have begun. */
  #stagedUntil(): number {
    const staged = this.#instances.flatMap(({ posted }) => posted.slice(1));
    const waiting = staged.filter(({ hasBegun }) => !hasBegun).flatMap(({ batch }) => batch);
    return Math.min(...waiting.map(({ expiresAt }) => expiresAt));
  }

  /** Gives an instance's thread a batch, then settles the last batch. */
  async #post({ model, posted: ofThread }: Instance, batch: readonly Held[], closedBy: Closing): Promise<void> {
    const { holdings, world, traces } = this.#context;
    const { exclusive, limits } = this.#settings;
    this.#take(batch);
    passed("batched", batch, nameOf);
    const trace = traces?.beginBatch(batch, closedBy);
    let onPosted = () => {};
    const isPosted = new Promise<void>((resolve) => {
      onPosted = () => {
        passed("posted", batch, nameOf);
        trace?.posted();
        resolve();
      };
    });
    const begin = new Begin();
    const again: Again[] = [];
    const posting = { begin, onPosted, ...(this.#runs && { again: (one: Again) => again.push(one) }) };
    const running = exclusive.share(() => execute(model, batch, limits, posting));
    const posted: Posted = { batch, closedBy, begin, again, hasBegun: false, execution: undefined, failure: undefined };
    ofThread.push(posted);
    running.then(
      (execution) => {
        posted.execution = execution;
        passed("ran", batch, nameOf, execution.ranMs);
        trace?.ran(execution);
        holdings.arrived.notify();
      },
      (failure: unknown) => {
        posted.failure = failure;
        holdings.arrived.notify();
      },
    );
    if (this.#ran !== undefined) await within(POST_MS, isPosted, world);
    this.#settleLastBatch();
    await this.#settling.room(SETTLING_AT_ONCE + this.#instances.length - 1);
  }

  /**
   * Takes out the batches that have run. The later of two may be the first, while the other waits
   * for its states.
   */
  #collect(): void {
    for (const { posted } of this.#instances) {
      const over = posted.filter(({ execution, failure }) => execution !== undefined || failure !== undefined);
      for (const one of over) {
        if (one.execution === undefined) throw one.failure;
        posted.splice(posted.indexOf(one), 1);
        this.#ended(one, one.execution);
      }
    }
  }

  #ended({ batch, closedBy, again }: Posted, execution: Execution): void {
    const { holdings, counts, log } = this.#context;
    this.#settleLastBatch();
    this.#ran = { batch, execution, again };
    // Requests that run again are part of the next plan.
    if (this.#model.iteration !== undefined) this.#settleLastBatch();
    // There is room for another batch now.
    holdings.taken.notify();
    const { ranMs, runs } = execution;
    if (runs > 0) counts.batches?.closed(closedBy);
    log.debug({ rows: batch.length, ranMs, runs }, "batch");
  }

  /**
   * Takes each staged batch back that has not begun, if one of its steps has expired.
   * @param always whether or not a step has expired: another thread may be free by now
   * @returns whether a batch waits again
   */
  #takeBack(always: boolean): boolean {
    return this.#instances.filter(({ posted }) => this.#takeStagedBack(posted, always)).length > 0;
  }

  #takeStagedBack(posted: Posted[], always: boolean): boolean {
    const { holdings, world } = this.#context;
    const [, staged] = posted;
    if (staged === undefined || staged.hasBegun) return false;
    if (!always && Math.min(...staged.batch.map(({ expiresAt }) => expiresAt)) > world.now()) return false;
    staged.hasBegun = !staged.begin.takeBack();
    if (staged.hasBegun) return false;
    posted.pop();
    holdings.putBack(staged.batch);
    this.#calls.putBack(staged.batch);
    return true;
  }

  #settleLastBatch(): void {
    const ran = this.#ran;
    if (ran === undefined) return;
    this.#ran = undefined;
    this.#settling.leave(ran.execution.abandoned);
    const settled = ran.execution.settlements();
    this.#callsLeft(ran.batch, ran.again);
    const { redis } = this.#context.queue;
    const again = ran.again.filter((one) => !this.#goOnCalling(one));
    for (const some of callGroups(redis, again, ({ held }) => bucketTag(held.delivery.bucket))) this.#goOn(some);
    void this.#settling.begin(settled);
  }

  /** Runs a step of an ensemble, in a batch with other requests. */
  call(held: Held): void {
    this.#calls.add(held);
    this.#context.holdings.arrived.notify();
  }

  /** Runs a step of an ensemble by itself, as long as its request is alone. */
  async callAlone(held: Held, alone: Alone): Promise<void> {
    if (!alone.isAlone) return this.call(held);
    const trace = this.#context.traces?.beginBatch([held], "alone");
    const again: Again[] = [];
    const posting = { onPosted: () => trace?.posted(), ...(this.#runs && { again: (one: Again) => again.push(one) }) };
    const execution = await alone.during(() => execute(this.#model, [held], this.#settings.limits, posting));
    trace?.ran(execution);
    execution.settlements();
    if (again.length === 0) this.#context.traces?.left(held.delivery);
    for (const one of again) if (await mayGoOn(one)) await this.callAlone(one.held, alone);
  }

  #take(batch: readonly Held[]): void {
    this.#context.holdings.take(batch);
    this.#calls.take(batch);
  }

  #callsLeft(batch: readonly Held[], again: readonly Again[] = []): void {
    const calls = batch.filter((held) => !isOfLane(held));
    if (calls.length === 0) return;
    const running = new Set(again.map(({ held }) => held.delivery));
    for (const { delivery } of calls) if (!running.has(delivery)) this.#context.traces?.left(delivery);
  }

  /**
   * Lets a call wait for its next run, once the ensemble has the answer.
   * @returns false for a request of a lane
   */
  #goOnCalling(one: Again): boolean {
    if (one.held.call === undefined) return false;
    void mayGoOn(one).then((may) => may && this.call(one.held));
    return true;
  }

  /** Lets requests wait for their next runs, once their last runs are in Redis. */
  #goOn(requests: readonly Again[], surely?: boolean): void {
    const { holdings, log } = this.#context;
    const going: Promise<void> = this.#settling
      .track(
        (async () => {
          try {
            const on = await this.#runs?.goOn(requests, surely);
            const kept = new Set([...(on?.again ?? []), ...(on?.ended ?? [])].map(({ delivery }) => delivery));
            for (const held of on?.again ?? []) holdings.again(held);
            this.#settling.drop(requests.map(({ held }) => held).filter(({ delivery }) => !kept.has(delivery)));
            if ((on?.ended.length ?? 0) > 0) void this.#settling.begin(on?.ended ?? []);
          } catch (error) {
            log.error({ requests: requests.length, error: String(error) }, "requests between two runs are tried again");
            this.#settling.leave(requests.map(({ held }) => held));
          }
          holdings.arrived.notify();
        })(),
      )
      .finally(() => this.#going.delete(going));
    this.#going.add(going);
  }

  /** Runs a step that may have ended its last worker. Nothing else runs meanwhile. */
  async #runAlone(suspect: Held): Promise<void> {
    const { counts, traces, log } = this.#context;
    try {
      const begins = await beginSuspect(this.#context, this.#settling, this.#settings, suspect);
      if (begins === undefined) return;
      const trace = traces?.beginBatch([suspect], "alone");
      const again: Again[] = [];
      const posting = {
        onPosted: () => trace?.posted(),
        ...(this.#runs && { again: (one: Again) => again.push(one) }),
      };
      const execution = await execute(this.#model, [begins.held], this.#settings.limits, posting);
      trace?.ran(execution);
      if (execution.runs > 0) counts.batches?.closed("alone");
      this.#settling.leave(execution.abandoned);
      const settled = execution.settlements();
      // A request that has come further than its last worker runs beside others again.
      if (again.length > 0) this.#goOn(again, true);
      await this.#settling.begin(settled);
    } catch (error) {
      log.warn({ error: String(error) }, "a suspect will be tried again");
      this.#settling.leave([suspect]);
    }
  }
}

function isOfLane({ call }: Held): boolean {
  return call === undefined;
}

/** Gives an ensemble an answer. @returns whether the model may run again; false ends the call */
async function mayGoOn({ held: { call }, outputs }: Again): Promise<boolean> {
  if (outputs !== undefined) await call?.answered(outputs);
  if (call?.isOver() === false) return true;
  call?.ended({ kind: "error", error: fixedError("cancelled", "alreadyEnded") });
  return false;
}

/** Ends a request that no model ran before its deadline. */
function expire(held: Held): Settled[] {
  return failed(held, fixedError("expired", "beforeResult"), () => expired(held));
}
