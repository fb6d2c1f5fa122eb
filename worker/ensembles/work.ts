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
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { retrying } from "#shared/retry.js";
import type { ModelCounts } from "../lane/counts.js";
import type { Exclusive } from "../lane/exclusive.js";
import { noRuns, type Batching, type Held, type RunsBefore, type StepEnd } from "../lane/holdings.js";
import type { LaneContext, LaneWork } from "../lane/lane.js";
import type { Settled } from "../lane/settle.js";
import { spentOf } from "../lane/spent.js";
import { failSequence, resultOf, unchanged, type EndLimits } from "../tensors/ends.js";
import { begun, type RunLog } from "../tensors/iterate.js";
import { Settling } from "../tensors/settling.js";
import { Flow, type FlowEnd } from "./flow.js";
import { Gathering } from "./gathering.js";
import type { EnsembleModel, ServingStep } from "./serving.js";

/** A model of this worker, as an ensemble calls it. */
export interface StepModel {
  readonly counts: ModelCounts;
  /** Runs a step in a batch with other requests. */
  call(held: Held): void;
  /** Runs a step by itself, while nothing else runs, as long as `isAlone` says so. */
  callAlone(held: Held, isAlone: () => boolean): Promise<void>;
}

export interface EnsembleSettings {
  readonly limits: EndLimits & { readonly timings?: boolean };
  /** Shared by all lanes of this process. */
  readonly exclusive: Exclusive;
  /** How often a request may run by itself without a commit, before it goes to the dead stream. */
  readonly maxRunsAlone: number;
  readonly runs: RunLog;
  /** The models of the steps, in the order of the steps. */
  readonly models: readonly StepModel[];
}

/** A request whose steps are under way. */
interface Flowing {
  readonly held: Held;
  readonly flow: Flow;
  before: RunsBefore;
  /** The end that the log of the request has told; `lost` if the request is another worker's. */
  ended: Settled | "lost" | undefined;
  /** Whether the request still runs while nothing else runs. */
  isAlone: boolean;
  /** Runs once the request may run beside others. */
  readonly onProgress: () => void;
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
  /** Flows that another ensemble has called. */
  #called = 0;
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
    return this.#model.most - this.#context.holdings.size - this.#called;
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
    if (this.#model.decoupled) for (const { flow } of this.#flowing) flow.stop();
    await this.#settling.all();
  }

  call(held: Held): void {
    void this.#flowCalled(held, () => false);
  }

  callAlone(held: Held, isAlone: () => boolean): Promise<void> {
    return this.#flowCalled(held, isAlone);
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
    const expired = [...suspects, ...holdings.waiting].filter(({ expiresAt }) => expiresAt <= world.now());
    if (expired.length === 0) return;
    holdings.take(expired);
    traces?.beginBatch(expired);
    const error = fixedError("expired", "beforeResult");
    void this.#settling.begin(
      expired.map((held) => {
        const action = held.delivery.start ? "fail" : "keep";
        return { ...unchanged(held, error), admittedAt: undefined, state: { action } };
      }),
    );
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

  /** Puts answers into the logs of their requests, and stops the requests that have ended by now. */
  async #goOn(some: readonly { readonly of: Flowing; readonly record: string | undefined }[]): Promise<void> {
    const { runs } = this.#settings;
    const requests = some.map(({ of, record }) => ({
      held: { ...of.held, before: of.before },
      checkpoint: undefined,
      answer: record,
    }));
    try {
      const { again, ended } = await runs.goOn(requests);
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
        of.ended ??= "lost";
        of.flow.stop();
      }
    }
  }

  async #flowBesideOthers(held: Held): Promise<void> {
    const { holdings, traces, log } = this.#context;
    holdings.take([held]);
    traces?.beginBatch([held]);
    try {
      await this.#flow(held, false).done;
    } catch (error) {
      log.error({ error: String(error) }, "a request will be tried again");
      this.#settling.leave([held]);
    }
    holdings.arrived.notify();
  }

  /** Runs a request that may have ended its last worker. Nothing else runs meanwhile. */
  async #runAlone(suspect: Held): Promise<void> {
    const { settler, world, log } = this.#context;
    const { maxRunsAlone, runs } = this.#settings;
    try {
      if ((await suspect.state).kind === "unavailable") return this.#settling.leave([suspect]);
      const resumed = await runs.resume(suspect);
      if (resumed.kind === "settle") return void (await this.#ends.add(resumed.settled));
      const run = world.uuid();
      const verdict = await retrying(() => beginAlone(settler.queue, suspect.delivery, maxRunsAlone, run), {
        budgetMs: settler.patienceMs,
        world,
      });
      if (verdict === "lost") return this.#settling.drop([suspect]);
      if (verdict === "poison") {
        log.error({ request: suspect.delivery.request }, "request set aside");
        const poison = failSequence(suspect, fixedError("poison_request", "usual"), "poison_request");
        return void (await this.#ends.add(poison));
      }
      const { held } = resumed;
      const { done, progressed } = this.#flow(this.#model.decoupled ? begun(held) : held, true);
      void this.#settling.track(
        done.catch((error: unknown) => {
          log.warn({ error: String(error) }, "a suspect will be tried again");
          this.#settling.leave([suspect]);
        }),
      );
      await Promise.race([done.catch(() => undefined), progressed]);
    } catch (error) {
      log.warn({ error: String(error) }, "a suspect will be tried again");
      this.#settling.leave([suspect]);
    }
  }

  /** @returns when the request is settled or left, and when it may run beside others */
  #flow(held: Held, isAlone: boolean): { readonly done: Promise<void>; readonly progressed: Promise<void> } {
    let onProgress = () => {};
    const progressed = new Promise<void>((resolve) => (onProgress = resolve));
    return { done: this.#flowToEnd(held, isAlone, onProgress), progressed };
  }

  async #flowToEnd(held: Held, isAlone: boolean, onProgress: () => void): Promise<void> {
    const lookup = await held.state;
    if (lookup.kind === "unavailable") return this.#settling.leave([held]);
    if (lookup.kind === "refused") return void (await this.#ends.add(failSequence(held, lookup.error)));
    const { tensors } = lookup;
    if (tensors !== undefined && statesFault(this.#model.states, false, tensors) !== undefined) {
      return void (await this.#ends.add(failSequence(held, fixedError("state_corrupt", "unfit"))));
    }
    const flow = this.#flowOf(
      held,
      tensors,
      () => of.isAlone,
      (outputs) => this.#answer(of, outputs),
    );
    const of: Flowing = { held, flow, before: noRuns, ended: undefined, isAlone, onProgress };
    this.#flowing.add(of);
    try {
      const settled = await this.#endOf(of);
      // A request that is another worker's, or that goes on elsewhere, is not settled here.
      if (settled === "lost") this.#settling.drop([held]);
      else if (settled !== undefined) await this.#ends.add(settled);
    } finally {
      this.#flowing.delete(of);
    }
  }

  /** @returns undefined for a request that was stopped and that another worker continues */
  async #endOf(of: Flowing): Promise<Settled | "lost" | undefined> {
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
      const spent = spentOf(held, flow.shareMs, 0);
      return { ...unchanged(held, this.#named(error)), spent };
    }
  }

  /** @param isAlone whether the steps run while nothing else runs */
  #flowOf(
    held: Held,
    states: readonly Tensor[] | undefined,
    isAlone: () => boolean,
    answer: (outputs: readonly Tensor[]) => Promise<void>,
  ): Flow {
    const { world } = this.#context;
    const { models } = this.#settings;
    const call = (step: ServingStep, one: Held) => {
      const model = models[this.#model.steps.indexOf(step)] as StepModel;
      const counted = counting(one, model.counts, () => world.now());
      if (!isAlone()) return model.call(counted);
      const failed = (error: unknown) => counted.call?.ended({ kind: "error", error: asInferenceError(error) });
      model.callAlone(counted, isAlone).catch(failed);
    };
    return new Flow({ model: this.#model, held, states, call, answer, now: () => world.now() });
  }

  async #answer(of: Flowing, outputs: readonly Tensor[]): Promise<void> {
    const bytes = outputs.reduce((sum, { data }) => sum + data.length, 0);
    const record = writeAnswer(of.before.answers, outputs, false);
    of.before = { ...of.before, answers: of.before.answers + 1, bytes: of.before.bytes + bytes };
    await this.#answers.add({ of, record });
    if (of.ended !== undefined) throw fixedError("cancelled", "alreadyEnded");
    if (!of.isAlone) return;
    // A request with a new answer has come further than at its last worker.
    of.isAlone = false;
    of.onProgress();
  }

  /** Runs the request of another ensemble's step, which settles nothing. */
  async #flowCalled(held: Held, isAlone: () => boolean): Promise<void> {
    const { call } = held;
    if (call === undefined) return;
    this.#called++;
    try {
      const lookup = await held.state;
      const states = lookup.kind === "found" ? lookup.tensors : undefined;
      const flow = this.#flowOf(held, states, isAlone, (outputs) => call.answered(outputs));
      const end = await flow.run();
      this.#ran(held, end);
      const outputs = this.#model.decoupled ? undefined : end.outputs;
      call.ended({ kind: "result", outputs, states: end.states, run: end.run, shareMs: end.shareMs });
    } catch (error) {
      call.ended({ kind: "error", error: this.#named(asInferenceError(error)) });
    } finally {
      this.#called--;
      this.#context.holdings.taken.notify();
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
