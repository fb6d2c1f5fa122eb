/**
 * The work on the lanes of an ensemble: lets requests flow through the steps, many side by side,
 * and settles their ends together. The models of the steps run them in batches with the requests of
 * their own lanes.
 */
import { writeAnswer } from "#shared/contract/answer-record.js";
import { samplingSpec } from "#shared/contract/generation.js";
import { statesFault } from "#shared/contract/states.js";
import { writeTimings } from "#shared/contract/timings.js";
import { boot } from "#shared/boot.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { decodeFrame, type Tensor } from "#shared/frame.js";
import type { Delivery } from "#shared/queue/entry.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { Alone } from "../lane/alone.js";
import type { ModelCounts } from "../lane/counts.js";
import type { Exclusive } from "../lane/exclusive.js";
import { noRuns, type Batching, type Held, type RunsBefore, type StepEnd } from "../lane/holdings.js";
import type { LaneContext, LaneWork } from "../lane/lane.js";
import type { Settled } from "../lane/settle.js";
import { spentOf } from "../lane/spent.js";
import { expired, failSequence, resultOf, unchanged, type EndLimits } from "../tensors/ends.js";
import { begun, bytesOf, checkBytes, type RunLog } from "../tensors/iterate.js";
import { Settling } from "../tensors/settling.js";
import { beginSuspect, type SuspectSettings } from "../tensors/suspects.js";
import { Flow, type FlowEnd, type FlowParts } from "./flow.js";
import { Gathering } from "./gathering.js";
import type { EnsembleModel, ServingStep } from "./serving.js";

/** A model of this worker, as an ensemble calls it. */
export interface StepModel {
  readonly counts: ModelCounts;
  /** Runs a step in a batch with other requests. */
  call(held: Held): void;
  /** Runs a step by itself, as long as its request is alone. */
  callAlone(held: Held, alone: Alone): Promise<void>;
}

export interface EnsembleSettings extends SuspectSettings {
  readonly limits: EndLimits & { readonly timings?: boolean };
  /** Shared by all lanes of this process. */
  readonly exclusive: Exclusive;
  readonly runs: RunLog;
  /** The models of the steps, in the order of the steps. */
  readonly models: readonly StepModel[];
}

/** A request whose steps are under way. */
interface Flowing {
  readonly held: Held;
  readonly flow: Flow;
  before: RunsBefore;
  /**
   * The end that the log of the request has told. `lost`: the request is another worker's. `left`:
   * Redis has not taken an answer, so the request is tried again.
   */
  ended: Settled | "lost" | "left" | undefined;
  /** Undefined for a request that runs beside others. */
  readonly alone: Alone | undefined;
  /** How many answers the log had when this worker got the request. */
  readonly logged: number;
}

/** Suspects run one after the other, so a worker takes few at a time. */
const SUSPECTS_AT_ONCE = 16;
/** How often the work asks whether requests still have to end, in ms. */
const LOOK_MS = 250;

export class EnsembleWork implements LaneWork, StepModel {
  readonly #model: EnsembleModel;
  readonly #context: LaneContext;
  readonly #settings: EnsembleSettings;
  readonly #settling: Settling;
  readonly #flowing = new Set<Flowing>();
  /** Whether the work leaves unfinished requests to other workers. */
  #isLeaving = false;
  /** When to ask next whether requests under way still have to end. */
  #looksAt = 0;
  readonly #ends: Gathering<Settled, unknown>;
  readonly #answers: Gathering<{ readonly of: Flowing; readonly record: string }, void>;

  constructor(model: EnsembleModel, context: LaneContext, settings: EnsembleSettings) {
    this.#model = model;
    this.#context = context;
    this.#settings = settings;
    this.#settling = new Settling(context, settings.runs);
    this.#ends = new Gathering((ends) => this.#settling.begin(ends));
    this.#answers = new Gathering((answers) => this.#append(answers));
  }

  get counts(): ModelCounts {
    return this.#context.counts;
  }

  get batching(): Batching {
    return this.#model.batching;
  }

  room(): number {
    return this.#model.most - this.#context.holdings.size;
  }

  suspectRoom(): number {
    return SUSPECTS_AT_ONCE - this.#context.holdings.suspects.length;
  }

  accepts({ sequence, frame }: Delivery): boolean {
    const { maxIdleMs, takesBoth, samples } = this.#model;
    if (samples !== undefined && !samplingSpec.safeParse(decodeFrame(frame).meta["sampling"]).success) return false;
    return sequence === undefined ? maxIdleMs === undefined || takesBoth : maxIdleMs !== undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { holdings } = this.#context;
    while (!signal.aborted) {
      this.#expire();
      for (const held of this.#free()) void this.#settling.track(this.#flowBesideOthers(held));
      const [suspect] = holdings.suspects;
      if (suspect !== undefined) {
        holdings.take([suspect]);
        await this.#settings.exclusive.alone(() => this.#runAlone(suspect));
        continue;
      }
      const soonest = Math.min(...holdings.waiting.map(({ expiresAt }) => expiresAt));
      await holdings.arrived.wait(Math.min(soonest, this.#flowing.size > 0 ? this.#looksAt : Infinity));
      this.#look();
    }
    // Another worker goes on with a request that has a log. Any other request ends here.
    this.#isLeaving = this.#model.decoupled;
    if (this.#isLeaving) for (const { flow } of this.#flowing) flow.stop();
    await this.#settling.all();
  }

  call(held: Held): void {
    void this.#flowCalled(held, undefined);
  }

  callAlone(held: Held, alone: Alone): Promise<void> {
    return this.#flowCalled(held, alone);
  }

  /** The requests that may begin: a sequence has one step at a time. */
  #free(): readonly Held[] {
    const { holdings } = this.#context;
    const busy = new Set([...this.#flowing].flatMap(({ held }) => held.sequence ?? []));
    return holdings.waiting.filter(({ sequence }) => {
      if (sequence === undefined) return true;
      const isFree = !busy.has(sequence);
      busy.add(sequence);
      return isFree;
    });
  }

  #expire(): void {
    const { holdings, world, traces } = this.#context;
    // A suspect may have answers already, and then its gateway knows whether it is late.
    const suspects = this.#model.decoupled ? holdings.suspects.map(begun) : holdings.suspects;
    const late = [...suspects, ...holdings.waiting].filter(({ expiresAt }) => expiresAt <= world.now());
    if (late.length === 0) return;
    holdings.take(late);
    traces?.beginBatch(late);
    void this.#settling.begin(late.map(expired));
  }

  /** Asks now and then whether requests under way still have to end. */
  #look(): void {
    const { queue, world } = this.#context;
    const { redis } = queue;
    if (world.now() < this.#looksAt) return;
    this.#looksAt = world.now() + LOOK_MS;
    const groups = callGroups(redis, [...this.#flowing], ({ held }) => bucketTag(held.delivery.bucket));
    for (const group of groups) void this.#settling.track(this.#goOn(group.map((of) => ({ of, record: undefined }))));
  }

  async #append(answers: readonly { readonly of: Flowing; readonly record: string }[]): Promise<void> {
    const { redis } = this.#context.queue;
    const groups = callGroups(redis, answers, ({ of }) => bucketTag(of.held.delivery.bucket));
    await Promise.all(groups.map((group) => this.#goOn(group)));
  }

  /** Puts answers into the logs of their requests, and stops requests that have ended by now. */
  async #goOn(
    some: readonly { readonly of: Flowing; readonly record: string | undefined }[],
    surely = false,
  ): Promise<void> {
    const { runs } = this.#settings;
    const requests = some.map(({ of, record }) => ({
      held: { ...of.held, before: { ...of.before, shareMs: of.flow.shareMs } },
      checkpoint: undefined,
      answer: record,
    }));
    try {
      const { again, ended } = await runs.goOn(requests, surely);
      const goesOn = new Set(again.map(({ delivery }) => delivery));
      for (const { of } of some) {
        const { delivery } = of.held;
        if (goesOn.has(delivery)) continue;
        of.ended ??= ended.find((one) => one.delivery === delivery) ?? "lost";
        of.flow.stop();
      }
    } catch (error) {
      this.#context.log.error({ requests: some.length, error: String(error) }, "requests under way are tried again");
      for (const { of } of some.filter(({ record }) => record !== undefined)) {
        of.ended ??= "left";
        of.flow.stop();
      }
    }
  }

  async #flowBesideOthers(held: Held): Promise<void> {
    const { holdings, log } = this.#context;
    holdings.take([held]);
    try {
      await this.#flow(held, undefined, 0);
    } catch (error) {
      log.error({ error: String(error) }, "a request will be tried again");
      this.#settling.leave([held]);
    }
    holdings.arrived.notify();
  }

  /** Runs a request that may have ended its last worker. Nothing else runs meanwhile. */
  async #runAlone(suspect: Held): Promise<void> {
    const { counts, log } = this.#context;
    try {
      const begins = await beginSuspect(this.#context, this.#settling, this.#settings, suspect);
      if (begins === undefined) return;
      counts.batches?.closed("alone");
      const { held, logged } = begins;
      const alone = new Alone();
      const done = this.#flow(this.#model.decoupled ? begun(held) : held, alone, logged).catch((error: unknown) => {
        log.warn({ error: String(error) }, "a suspect will be tried again");
        this.#settling.leave([suspect]);
      });
      void this.#settling.track(done);
      await Promise.race([done, alone.progress]);
      alone.end();
      // The next suspect must not be blamed for a run of this one.
      await alone.idle();
    } catch (error) {
      log.warn({ error: String(error) }, "a suspect will be tried again");
      this.#settling.leave([suspect]);
    }
  }

  /**
   * Lets a request flow through the steps, and settles it.
   * @param alone undefined for a request that runs beside others
   */
  async #flow(held: Held, alone: Alone | undefined, logged: number): Promise<void> {
    const lookup = await held.state;
    if (lookup.kind === "unavailable") return this.#settling.leave([held]);
    if (lookup.kind === "refused") return void (await this.#ends.add(failSequence(held, lookup.error)));
    const { tensors } = lookup;
    if (tensors !== undefined && statesFault(this.#model.states, false, tensors) !== undefined) {
      return void (await this.#ends.add(failSequence(held, fixedError("state_corrupt", "unfit"))));
    }
    if (this.#isLeaving) return;
    const trace = this.#context.traces?.beginBatch([held], alone && "alone");
    trace?.posted();
    const flow = this.#flowOf(held, tensors, alone, {
      answer: (outputs) => this.#answer(of, outputs),
      isCancelled: () => false,
    });
    const of: Flowing = { held, flow, before: noRuns, ended: undefined, alone, logged };
    this.#flowing.add(of);
    const since = this.#context.world.now();
    try {
      const settled = await this.#endOf(of);
      trace?.ran({ ranMs: this.#context.world.now() - since, runs: 1 });
      // A request that is another worker's, or that goes on elsewhere, is not settled here.
      if (settled === "lost") this.#settling.drop([held]);
      else if (settled === "left") this.#settling.leave([held]);
      else if (settled !== undefined) await this.#ends.add(settled);
    } finally {
      this.#flowing.delete(of);
    }
  }

  /** @returns undefined for a request that was stopped and that another worker continues */
  async #endOf(of: Flowing): Promise<Settled | "lost" | "left" | undefined> {
    const { held, flow } = of;
    try {
      const end = await flow.run();
      if (of.ended !== undefined) return of.ended;
      this.#ran(held, end);
      const answered = { ...held, before: of.before };
      const record = this.#model.decoupled ? writeAnswer(of.before.answers, undefined, true) : undefined;
      return resultOf(answered, { ...end, record }, this.#settings.limits, () => this.#note(held, end));
    } catch (error) {
      if (of.ended !== undefined) return of.ended;
      if (!(error instanceof InferenceError)) throw error;
      if (flow.isStopped) return undefined;
      const settled = unchanged(held, this.#named(error));
      const spent = spentOf({ ...held, before: of.before }, flow.shareMs, 0);
      // A START of which no step has run leaves no sequence behind.
      const neverRan = error.code === "expired" && !flow.hasRun && held.delivery.start;
      return { ...settled, spent, ...(neverRan && { state: { action: "fail" } }) };
    }
  }

  /** @param alone undefined for a request that runs beside others */
  #flowOf(
    held: Held,
    states: readonly Tensor[] | undefined,
    alone: Alone | undefined,
    ends: Pick<FlowParts, "answer" | "isCancelled">,
  ): Flow {
    const { world } = this.#context;
    const { models } = this.#settings;
    const call = (step: ServingStep, one: Held) => {
      const model = models[this.#model.steps.indexOf(step)] as StepModel;
      const counted = counting(one, model.counts, () => world.now());
      if (alone?.isAlone !== true) return model.call(counted);
      const failed = (error: unknown) => counted.call?.ended({ kind: "error", error: asInferenceError(error) });
      model.callAlone(counted, alone).catch(failed);
    };
    return new Flow({ model: this.#model, held, states, call, ...ends, now: () => world.now() });
  }

  async #answer(of: Flowing, outputs: readonly Tensor[]): Promise<void> {
    const { before, alone, logged } = of;
    const bytes = before.bytes + bytesOf(outputs);
    checkBytes(bytes);
    const record = writeAnswer(before.answers, outputs, false);
    of.before = { ...before, answers: before.answers + 1, bytes };
    // A request with a new answer has come further than at its last worker.
    const hasProgressed = alone?.isAlone === true && of.before.answers > logged;
    if (hasProgressed) await this.#goOn([{ of, record }], true);
    else await this.#answers.add({ of, record });
    if (of.ended !== undefined) throw fixedError("cancelled", "alreadyEnded");
    if (hasProgressed) alone.end();
  }

  /** Runs the request of another ensemble's step, which settles nothing. */
  async #flowCalled(held: Held, alone: Alone | undefined): Promise<void> {
    const { call } = held;
    if (call === undefined) return;
    try {
      const lookup = await held.state;
      const states = lookup.kind === "found" ? lookup.tensors : undefined;
      const flow = this.#flowOf(held, states, alone, {
        answer: (outputs) => call.answered(outputs),
        isCancelled: () => call.isOver(),
      });
      const end = await flow.run();
      this.#ran(held, end);
      const outputs = this.#model.decoupled ? undefined : end.outputs;
      call.ended({ kind: "result", outputs, states: end.states, run: end.run, shareMs: end.shareMs });
    } catch (error) {
      call.ended({ kind: "error", error: this.#named(asInferenceError(error)) });
    }
  }

  #ran({ rows }: Held, { run: { inputMs, ranMs, outputMs } }: FlowEnd): void {
    const { batches } = this.#context.counts;
    batches?.ran(rows, inputMs, ranMs, 0);
    batches?.tookApart(rows, outputMs);
  }

  #note({ admittedAt }: Held, { run: { begunAt, ranMs } }: FlowEnd): string | undefined {
    if (this.#settings.limits.timings !== true) return undefined;
    return writeTimings({ queueMs: begunAt - admittedAt, runMs: ranMs, boot });
  }

  #named({ code, message, reason }: InferenceError): InferenceError {
    return new InferenceError(code, `in ensemble '${this.#model.name}', ${message}`, { reason });
  }
}

/** Counts the end of a step as a request of its model. */
function counting(held: Held, counts: ModelCounts, now: () => number): Held {
  const { call } = held;
  if (call === undefined) return held;
  const ended = (end: StepEnd) => {
    counts.called(held, end, now());
    call.ended(end);
  };
  return { ...held, call: { isOver: () => call.isOver(), answered: (outputs) => call.answered(outputs), ended } };
}

function asInferenceError(error: unknown): InferenceError {
  if (error instanceof InferenceError) return error;
  return new InferenceError("internal", "a step of the ensemble could not be run", { cause: error });
}
