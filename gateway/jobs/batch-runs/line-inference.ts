/**
 * Stands between the paths that lines name and admission: a line waits behind all whose clients
 * wait, and what is known of its request is forgotten as soon as its answer is kept in the batch's
 * output.
 */
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import type {
  AnyRequest,
  GenerationRequest,
  Inference,
  InferenceOutcome,
  InferenceRequest,
} from "../../admission/inference.js";
import { requestAddress, type AddressTerms } from "../../admission/request-id.js";
import { jobLevel } from "../../kserve/queue-policy.js";
import type { OutcomeSweeper } from "../../outcomes/sweep.js";
import type { OpenStream } from "../../stream/open-stream.js";
import type { LineLimits } from "./line-limits.js";

/** As a job's, from 1 to 9: the last. */
const PRIORITY = 9;
/**
 * How long the outcome of a line is known, in ms, if the process dies before the answer is kept. If
 * no process runs the batch for longer than that, the lines that were under way are run once more.
 * It is less than the usual time for which results are kept for clients, so that outcomes of lines
 * do not count in the budget of those.
 */
const KEY_TTL_MS = 3_000_000;

type Sweeper = Pick<OutcomeSweeper, "discard">;

/** What a line has made. */
interface Made {
  /** The keys in Redis of its requests. */
  readonly keys: Set<string>;
  /** The model of the first; undefined until there is one. */
  model: string | undefined;
}

export class LineInference implements Inference {
  readonly #limits: LineLimits;
  #parts: { readonly inner: Inference; readonly addresses: AddressTerms; readonly sweeper: Sweeper } | undefined;
  /** By their own keys, the lines that a run asks now, or whose answers it has not kept yet. */
  readonly #lines = new Map<string, Made>();

  constructor(limits: LineLimits) {
    this.#limits = limits;
  }

  /** To be called once, before the first request. */
  over(inner: Inference, addresses: AddressTerms, sweeper: Sweeper): this {
    this.#parts = { inner, addresses, sweeper };
    return this;
  }

  infer(request: InferenceRequest): Promise<InferenceOutcome> {
    this.#note(request);
    return this.#opened.inner.infer(inLine(request));
  }

  inferLater(request: InferenceRequest): Promise<string> {
    this.#note(request);
    return this.#opened.inner.inferLater(inLine(request));
  }

  generate(request: GenerationRequest): Promise<OpenStream> {
    this.#note(request);
    return this.#opened.inner.generate({ ...request, ...termsOf(request) });
  }

  /** A run asks this line from now on, until it is released or forgotten. */
  begin(line: string): void {
    this.#lines.set(line, { keys: new Set(), model: undefined });
  }

  /** Nobody asks for what this line gave any more. */
  release(line: string): void {
    for (const key of this.#lines.get(line)?.keys ?? []) this.#opened.sweeper.discard(key);
    this.forget(line);
  }

  /** Another run may ask for what this line gave. */
  forget(line: string): void {
    const model = this.#lines.get(line)?.model;
    this.#lines.delete(line);
    if (model !== undefined) this.#limits.ended(batchOf(line), model);
  }

  get #opened() {
    if (this.#parts === undefined) throw new TypeError("a line was asked before there was a queue");
    return this.#parts;
  }

  #note(request: AnyRequest): void {
    const [line = ""] = (request.idempotencyKey ?? "").split("\n", 1);
    const made = this.#lines.get(line);
    // Its run has given it up before it came here, and nobody would ever release it.
    if (made === undefined) return;
    if (made.model === undefined) {
      made.model = request.model.name;
      this.#limits.begun(batchOf(line), request.model);
    }
    const address = requestAddress(request, this.#opened.addresses);
    made.keys.add(outcomeKey(address)).add(logKey(address));
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
