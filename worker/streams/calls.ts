/**
 * The texts that ensembles call for (`worker/ensembles/`). They run as streams beside those of the
 * lanes, but have no log: each part goes to the ensemble, which writes down its own answers. A
 * worker that takes over the ensemble's request begins the text anew.
 */
import { type GenerationSpec, samplingSpec, type TokenRecord } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { outputTensor, textOfInput } from "#shared/contract/texts.js";
import { stopwatch } from "#shared/metrics/stopwatch.js";
import type { Held, StepEnd } from "../lane/holdings.js";
import type { Settled } from "../lane/settle.js";
import type { StepTraces } from "../trace/step-traces.js";
import type { LogRecord, StreamOwner } from "./committer.js";
import type { StreamCounts } from "./counts.js";
import { prepare, type Prepared } from "./prepare.js";
import type { ServingGenerator } from "./load.js";
import { failed } from "./settlement.js";
import type { Stream } from "./stream.js";

/** Takes the records and the end of a stream from the loop. */
export interface StreamSink {
  /** @param ending the end of the request, with the final record */
  push(stream: Stream, record: LogRecord, ending?: Settled): void;
  /** @param index of the record that the error takes the place of */
  fail(stream: Stream, index: number, error: InferenceError): void;
}

interface CallParts {
  readonly model: ServingGenerator;
  readonly counts: StreamCounts;
  readonly owner: StreamOwner;
  /** Undefined if the worker makes no traces. */
  readonly traces: StepTraces | undefined;
}

export class CalledStreams implements StreamSink {
  readonly #parts: CallParts;
  #named = 0;
  /** Of streams with an answer: resolves when the ensemble has taken all answers so far. */
  readonly #passed = new WeakMap<Stream, Promise<void>>();

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  /**
   * Turns the request of a step into a generation with a key of its own, because one request of an
   * ensemble may call several times.
   * @throws InferenceError if its tensor is no prompt
   */
  generationOf(held: Held): Held {
    const { request, delivery } = held;
    const [input] = request.tensors as [Tensor];
    const text = textOfInput(input, this.#parts.model.name);
    if (text === "") throw new InferenceError("invalid_argument", `${input.name} must not be empty`);
    const sampling = samplingSpec.parse(request.meta["sampling"]);
    const generation: GenerationSpec = { prompt: { kind: "text", text }, sampling };
    return {
      ...held,
      delivery: { ...delivery, key: `call ${this.#named++}`, sequence: undefined },
      request: { ...request, meta: { ...request.meta, generation } },
      state: Promise.resolve({ kind: "found", tensors: undefined }),
    };
  }

  prepare(stream: Stream): Promise<Prepared> {
    const noLog = { records: [], state: "open", wantedUntil: undefined, standsSince: 0 } as const;
    return prepare(this.#parts.model, stream, noLog, undefined);
  }

  push(stream: Stream, { index, record, tokens }: LogRecord, ending?: Settled): void {
    const { held, ranMs, figures, begunAt } = stream;
    this.#parts.counts.appended(stream, { first: index, records: 1, tokens, bytes: 0 }, stopwatch());
    const texts = Array.from({ length: stream.spec.sampling.choices }, () => "");
    for (const choice of (JSON.parse(record) as TokenRecord).choices) texts[choice.index] = choice.text;
    // As for any client of a generator, a record without text is no answer, but a text has one.
    const hasAnswer = texts.some((text) => text !== "") || (ending !== undefined && !this.#passed.has(stream));
    const outputs = hasAnswer ? answerOf(held, texts) : undefined;
    if (ending !== undefined) {
      const run = { begunAt: figures.joinedAt ?? begunAt, inputMs: 0, ranMs, outputMs: 0 };
      this.#end(stream, ending, { kind: "result", outputs, states: [], run, shareMs: ranMs });
    } else if (outputs !== undefined) {
      this.#pass(stream, async () => {
        if (held.call?.isOver() === false) await held.call.answered(outputs);
      });
    }
  }

  fail(stream: Stream, _: number, error: InferenceError): void {
    this.#parts.owner.close(stream);
    this.#end(stream, failed(stream.held, error), { kind: "error", error });
  }

  #end(stream: Stream, ending: Settled, end: StepEnd): void {
    const { counts, owner, traces } = this.#parts;
    const { call, delivery } = stream.held;
    counts.ended(stream, ending, stopwatch());
    traces?.left(delivery);
    this.#pass(stream, () => call?.ended(end));
    owner.release(stream);
  }

  /** Gives the ensemble something once it has taken all answers before. */
  #pass(stream: Stream, give: () => Promise<void> | void): void {
    this.#passed.set(stream, (this.#passed.get(stream) ?? Promise.resolve()).then(give));
  }
}

/** @param texts one for each choice */
function answerOf({ request: { meta, tensors } }: Held, texts: readonly string[]): Tensor[] {
  const shape = tensors[0]?.shape ?? [];
  return (meta["outputs"] as readonly string[]).map((name) => outputTensor(name, texts, shape));
}
