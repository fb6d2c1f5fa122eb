/**
 * One request on its way through the steps of an ensemble. A step runs as soon as its inputs exist,
 * beside others. The steps behind a decoupled step run once for each of its answers, one answer
 * after the other. Nothing is written before the end: the caller commits the states of all steps
 * with the outcome.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { RunTimes } from "../lane/counts.js";
import { noRuns, shapeKeyOf, type Held, type StepEnd, type StepResult } from "../lane/holdings.js";
import { InOrder } from "./in-order.js";
import { inputFault, shapedAs } from "./input-fault.js";
import type { EnsembleModel, OutputSpec, ServingStep } from "./serving.js";

/** What a flow needs of the worker. */
export interface FlowParts {
  readonly model: EnsembleModel;
  readonly held: Held;
  /** The states of all steps; undefined if the request begins with the initial ones. */
  readonly states: readonly Tensor[] | undefined;
  /** Lets the model of a step run. Its end arrives at the call that `step` holds. */
  readonly call: (step: ServingStep, held: Held) => void;
  /** Takes an answer of a decoupled ensemble. @returns resolves when the next may come */
  readonly answer: (outputs: readonly Tensor[]) => Promise<void>;
  /** Whether nobody needs the flow any more. */
  readonly isCancelled: () => boolean;
  readonly now: () => number;
}

/** The end of a flow that came to its end. */
export interface FlowEnd {
  /** The outputs that the client wants; none if the ensemble is decoupled. */
  readonly outputs: readonly Tensor[];
  readonly states: readonly Tensor[];
  /** The sums of all steps. */
  readonly run: RunTimes;
  readonly shareMs: number;
}

type Values = ReadonlyMap<string, Tensor>;

export class Flow {
  readonly #parts: FlowParts;
  readonly #states: (Tensor | undefined)[];
  readonly #times = { begunAt: Infinity, inputMs: 0, ranMs: 0, outputMs: 0 };
  #shareMs = 0;
  #hasAnswered = false;
  #hasEnded = false;
  #isStopped = false;

  constructor(parts: FlowParts) {
    this.#parts = parts;
    this.#states = parts.model.states.map((_, i) => parts.states?.[i]);
  }

  /** What the steps have taken of the models' time so far, in ms. */
  get shareMs(): number {
    return this.#shareMs;
  }

  /** Whether a step has come to its end. */
  get hasRun(): boolean {
    return this.#times.begunAt !== Infinity;
  }

  /** Lets the steps that run come to their ends in vain. No further step begins. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Whether the worker has stopped the flow. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** @throws InferenceError of the first step that fails; no other step begins then */
  async run(): Promise<FlowEnd> {
    const { model, held, now } = this.#parts;
    const inputs = held.request.tensors.map((tensor) => [tensor.name, tensor] as const);
    let outputs: readonly Tensor[] = [];
    try {
      await this.#level(0, new Map(inputs), async (values) => {
        const wanted = (held.request.meta["outputs"] as readonly string[]).map((name) => {
          const spec = model.outputs.find((output) => output.name === name) as OutputSpec;
          return { ...shapedAs(values.get(name) as Tensor, spec.dims, model.batching.batched), name };
        });
        if (!model.decoupled) outputs = wanted;
        else await this.#parts.answer(wanted);
        this.#hasAnswered = true;
      });
    } finally {
      this.#hasEnded = true;
    }
    const begunAt = Math.min(this.#times.begunAt, now());
    const states = model.states.map(({ input: name }, i) => ({ ...(this.#states[i] as Tensor), name }));
    return { outputs, states, run: { ...this.#times, begunAt }, shareMs: this.#shareMs };
  }

  /** Runs the steps of a level. @param end takes the tensors of each way through the last level */
  async #level(level: number, given: Values, end: (values: Values) => Promise<void>): Promise<void> {
    const { steps } = this.#parts.model;
    const values = new Map(given);
    const done = new Map<number, Promise<void>>();
    for (const [place, step] of steps.entries()) {
      if (step.level !== level || step.served.decoupled === true) continue;
      const before = step.after.flatMap((by) => done.get(by) ?? []);
      done.set(place, this.#plainStep(step, values, before));
    }
    await Promise.all(done.values());
    const source = steps.find((step) => step.level === level && step.served.decoupled === true);
    if (source === undefined) return end(values);
    await this.#answers(source, values, (answered) => this.#level(level + 1, answered, end));
  }

  /** @param before the steps whose outputs the step takes */
  async #plainStep(step: ServingStep, values: Map<string, Tensor>, before: readonly Promise<void>[]): Promise<void> {
    await Promise.all(before);
    const { outputs, states } = await this.#step(step, values);
    this.#keep(step, values, outputs ?? [], states);
  }

  /** Runs a decoupled step, and lets its answers flow on in their order. */
  async #answers(step: ServingStep, given: Values, next: (values: Values) => Promise<void>): Promise<void> {
    const answers = new InOrder<readonly Tensor[]>(async (outputs) => {
      const values = new Map(given);
      this.#keep(step, values, outputs, []);
      try {
        await next(values);
      } catch (error) {
        // The model stops at its next run.
        this.#hasEnded = true;
        throw error;
      }
    });
    const running = this.#step(step, given, async (outputs) => {
      answers.add(outputs);
      await answers.room(this.#parts.model.mostAnswers);
    });
    const [last] = await Promise.allSettled([running]);
    if (last.status === "fulfilled" && last.value.outputs !== undefined) answers.add(last.value.outputs);
    // The answers before a failure of the step arrive before it.
    await answers.all();
    const { states } = await running;
    this.#keep(step, new Map(), [], states);
  }

  /** Notes what a step leaves. */
  #keep(step: ServingStep, values: Map<string, Tensor>, outputs: readonly Tensor[], states: readonly Tensor[]): void {
    for (const output of outputs) {
      const to = step.outputs.find(({ name }) => name === output.name)?.to;
      if (to !== undefined) values.set(to, output);
    }
    if (step.startsAnew) return;
    for (const [i, state] of states.entries()) this.#states[step.firstState + i] = state;
  }

  /**
   * @param answered takes the answers of a decoupled model before its last
   * @throws InferenceError
   */
  async #step(
    step: ServingStep,
    values: Values,
    answered: (outputs: readonly Tensor[]) => Promise<void> = () => Promise.resolve(),
  ): Promise<StepResult> {
    const { call, now } = this.#parts;
    if (this.#isOver()) throw fixedError("cancelled", "alreadyEnded");
    const end = await new Promise<StepEnd>((resolve, reject) => {
      try {
        const isOver = () => this.#isOver();
        call(step, this.#held(step, values, { isOver, answered, ended: resolve }));
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    if (end.kind === "error") throw end.error;
    const { run } = end;
    const times = this.#times;
    times.begunAt = Math.min(times.begunAt, run.begunAt, now());
    times.inputMs += run.inputMs;
    times.ranMs += run.ranMs;
    times.outputMs += run.outputMs;
    this.#shareMs += end.shareMs;
    return end;
  }

  #isOver(): boolean {
    return this.#hasEnded || this.#isStopped || this.#parts.isCancelled();
  }

  /**
   * The request of a step. It has the deadline of the ensemble's request, and its id and flags
   * unless it is a sequence of its own.
   * @throws InferenceError if a tensor does not fit the model of the step
   */
  #held(step: ServingStep, values: Values, call: Held["call"]): Held {
    const { held, now } = this.#parts;
    const tensors = step.inputs.flatMap(({ spec, from }) => {
      const value = values.get(from);
      if (value === undefined) return [];
      const hasRows = step.batching.batched && !step.batching.shared.has(spec.name);
      return { ...shapedAs(value, spec.dims, hasRows), name: spec.name };
    });
    const fault = inputFault(step, tensors);
    if (fault !== undefined) throw new InferenceError("invalid_argument", fault);
    const { batching, states, firstState, startsAnew } = step;
    const own = states.map(({ input: name }, i) => ({ state: this.#states[firstState + i], name }));
    const known = own.flatMap(({ state, name }) => (state === undefined ? [] : { ...state, name }));
    const begins = startsAnew || this.#parts.states === undefined;
    const rowed = batching.batched ? tensors.find(({ name }) => !batching.shared.has(name)) : undefined;
    const since = now();
    return {
      ...held,
      delivery: startsAnew ? { ...held.delivery, sequence: undefined, start: false, end: false } : held.delivery,
      request: { meta: { ...held.request.meta, outputs: step.outputs.map(({ name }) => name) }, tensors },
      rows: rowed?.shape[0] ?? 1,
      shapeKey: shapeKeyOf(tensors, batching),
      sequence: undefined,
      state: Promise.resolve({ kind: "found", tensors: begins ? undefined : known }),
      arrivedAt: since,
      admittedAt: since,
      expiresAt: this.#hasAnswered ? Infinity : held.expiresAt,
      before: noRuns,
      call,
    };
  }
}
