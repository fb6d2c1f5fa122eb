/**
 * Stands between the formats that answer lines and admission. A line waits behind all requests
 * whose clients wait. Redis forgets the line's outcome as soon as the batch's output has the
 * answer.
 */
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import { readTraceparent, type SpanIds } from "#shared/trace/context.js";
import type { Tracer } from "#shared/trace/span.js";
import type {
  AnyRequest,
  GenerationRequest,
  Inference,
  InferenceOutcome,
  InferenceRequest,
} from "../../../admission/inference.js";
import { requestAddress, type AddressTerms } from "../../../admission/request-id.js";
import { jobLevel } from "../../../formats/kserve/queue-policy.js";
import type { OutcomeSweeper } from "../../../outcomes/sweep.js";
import type { OpenStream } from "../../../stream/open-stream.js";
import { JobTrace } from "../../../trace/job-trace.js";
import type { LineLimits } from "./line-limits.js";

/** The priority of lines, as for jobs, from 1 to 9: the last. */
const PRIORITY = 9;
/**
 * How long Redis keeps the outcome of a line, in ms, if the process dies before the answer is
 * stored. If no process runs the batch for longer, the next run repeats the lines that were under
 * way. The time is shorter than the usual time for results that clients may fetch later, so that
 * outcomes of lines do not count in the budget of these results.
 */
const KEY_TTL_MS = 3_000_000;

type Sweeper = Pick<OutcomeSweeper, "discard">;

/** The requests of a line. */
interface Made {
  /** The Redis keys of the requests. */
  readonly keys: Set<string>;
  /** The model of the first request; undefined before the first request. */
  model: string | undefined;
  /** The span of the batch's submission; undefined if it is not sampled. */
  readonly submission: SpanIds | undefined;
}

/** @returns undefined if runs of the model are not traced */
type TracerOf = (model: string) => Tracer | undefined;

export class LineInference implements Inference {
  readonly #limits: LineLimits;
  readonly #inner: Inference;
  readonly #addresses: AddressTerms;
  readonly #sweeper: Sweeper;
  readonly #tracerOf: TracerOf | undefined;
  /** By key, the lines that a run has sent, and whose answers are not stored yet. */
  readonly #lines = new Map<string, Made>();

  /** @param tracerOf absent without traces */
  constructor(limits: LineLimits, inner: Inference, addresses: AddressTerms, sweeper: Sweeper, tracerOf?: TracerOf) {
    this.#limits = limits;
    this.#inner = inner;
    this.#addresses = addresses;
    this.#sweeper = sweeper;
    this.#tracerOf = tracerOf;
  }

  infer(request: InferenceRequest): Promise<InferenceOutcome> {
    return this.#inner.infer(inLine({ ...request, ...this.#note(request) }));
  }

  inferLater(request: InferenceRequest): Promise<string> {
    return this.#inner.inferLater(inLine({ ...request, ...this.#note(request) }));
  }

  generate(request: GenerationRequest): Promise<OpenStream> {
    return this.#inner.generate({ ...request, ...termsOf(request), ...this.#note(request) });
  }

  /**
   * Notes that a run sends this line. The line stays known until `release` or `forget`.
   * @param submission the span of the batch's submission, as a traceparent
   */
  begin(line: string, submission?: string): void {
    this.#lines.set(line, { keys: new Set(), model: undefined, submission: readTraceparent(submission) });
  }

  /** Discards the line's outcome, because the batch has stored the answer. */
  release(line: string): void {
    for (const key of this.#lines.get(line)?.keys ?? []) this.#sweeper.discard(key);
    this.forget(line);
  }

  /** Keeps the line's outcome for the next run, and frees the line's place. */
  forget(line: string): void {
    const model = this.#lines.get(line)?.model;
    this.#lines.delete(line);
    if (model !== undefined) this.#limits.ended(batchOf(line), model);
  }

  /** @returns the trace of the line, which is one of its own, as that of a job's run */
  #note(request: AnyRequest): Pick<AnyRequest, "trace"> | undefined {
    const [line = ""] = (request.idempotencyKey ?? "").split("\n", 1);
    const made = this.#lines.get(line);
    // The run gave the line up before this request, and would never release the line.
    if (made === undefined) return undefined;
    if (made.model === undefined) {
      made.model = request.model.name;
      this.#limits.begun(batchOf(line), request.model);
    }
    const address = requestAddress(request, this.#addresses);
    made.keys.add(outcomeKey(address)).add(logKey(address));
    const tracer = made.submission && this.#tracerOf?.(request.model.name);
    return tracer && { trace: new JobTrace(tracer, made.submission) };
  }
}

/** @param line its key: the id of its batch, and its number */
function batchOf(line: string): string {
  return line.slice(0, line.lastIndexOf(":"));
}

function inLine(request: InferenceRequest): InferenceRequest {
  return { ...request, ...termsOf(request), under: (model) => inLine(request.under(model)) };
}

function termsOf({ model, queue }: AnyRequest): Pick<AnyRequest, "queue" | "keyTtlMs"> {
  const level = jobLevel(PRIORITY, model);
  const usual = { rejectMs: undefined, delayMs: undefined, mostQueued: undefined };
  return { keyTtlMs: KEY_TTL_MS, queue: { ...(queue ?? usual), level } };
}
