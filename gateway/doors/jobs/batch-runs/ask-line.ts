/**
 * Answers a line as the line's path answers a request: the same formats read the body and write the
 * outcome, and no transport has a part in that.
 */
import type { Inference } from "../../../admission/inference.js";
import { allows } from "../../../auth/owner/globs.js";
import type { Tenants } from "../../../auth/tenants.js";
import { visible, type ModelDirectory } from "../../../fleet/models.js";
import { usualDeadline } from "../../../generation/limits.js";
import { errorReply, errorShapeOf, isRefusal } from "../../../formats/errors.js";
import { bodyTooLarge, textBodyLimit, type Limits } from "../../../formats/limits.js";
import { turnOfItsOwn } from "../../../formats/own-turn.js";
import type { Reply } from "../../../formats/reply.js";
import { answerGenerate, answerInfer } from "../../../formats/kserve/answer.js";
import type { ModelCall } from "../../../formats/kserve/call.js";
import type { RequestReader } from "../../../formats/kserve/request-reader.js";
import type { TensorPrinter } from "../../../formats/kserve/tensor-printer.js";
import { parseChatRequest } from "../../../formats/openai/chat.js";
import { parseCompletionRequest } from "../../../formats/openai/completions.js";
import { answerWhole } from "../../../formats/openai/whole-answer.js";
import { parseRequestJson } from "#shared/json/members.js";

/** The deadline of a line without a deadline, in ms: the longest time of a batch. */
export const LINE_DEADLINE_MS = 7 * 86_400_000;

export interface LineRequest {
  readonly tenant: string;
  /** The batch's path, which `api/batches.ts` has checked. */
  readonly path: string;
  /** Globs of the models that the batch may use; undefined: all models. */
  readonly models: readonly string[] | undefined;
  /** The same for each attempt and each run of a line. */
  readonly key: string;
  readonly body: Buffer;
}

export interface LineAnswer {
  readonly status: number;
  /** Undefined if the answer is not JSON. */
  readonly body: Buffer | undefined;
}

export interface LineSettings {
  readonly fleet: { readonly directory: ModelDirectory };
  readonly tenants: Pick<Tenants, "termsOf">;
  readonly inference: Inference;
  readonly reader: RequestReader;
  readonly printer: TensorPrinter;
  readonly limits: Limits;
  /** Called with each failure that is a bug and no refusal. */
  readonly onBug: (error: unknown, line: string) => void;
}

const modelPath = /^\/v2\/models\/([^/]+)(?:\/versions\/(\d+))?\/(infer|generate)$/;

export class LineAsker {
  readonly #settings: LineSettings;

  constructor(settings: LineSettings) {
    this.#settings = { ...settings, limits: { ...settings.limits, defaultDeadlineMs: LINE_DEADLINE_MS } };
  }

  async ask(request: LineRequest): Promise<LineAnswer> {
    const { status, headers, body } = await this.#answer(request).catch((error: unknown) => {
      if (!isRefusal(error)) this.#settings.onBug(error, request.key);
      return errorReply(error, errorShapeOf(request.path));
    });
    if (headers["content-type"] !== "application/json") return { status, body: undefined };
    return { status, body: Buffer.concat(body.map((part) => (typeof part === "string" ? Buffer.from(part) : part))) };
  }

  async #answer(request: LineRequest): Promise<Reply> {
    const { tenant, path, models = ["*"], key, body } = request;
    const { fleet, tenants, inference, reader, printer, limits } = this.#settings;
    const { mayUse, budget } = await tenants.termsOf(tenant);
    const directory = visible(fleet.directory, (name) => mayUse(name) && allows(models, name));
    const [, name, version, verb] = modelPath.exec(path) ?? [];
    if (name === undefined) return this.#generate(directory, request, budget);
    const model = directory.find(name, version);
    const others = directory.others(model);
    const isText = verb === "generate" || model.generator !== undefined;
    await admitBody(body, isText ? textBodyLimit(limits) : limits.jsonBytes);
    const form = verb === "generate" ? "generate" : "infer";
    // The reader takes the memory of a long body. Other lines of the file share that memory, and
    // the next attempt sends it again.
    const own = Buffer.from(body);
    const read = await reader.read(
      own,
      own.length,
      { path: form, headerLength: undefined, model, others, limits },
      stays,
    );
    const call: ModelCall = {
      tenant,
      budget,
      model,
      version,
      others,
      inference,
      printer,
      limits,
      idempotencyKey: key,
      background: false,
      gone: never,
    };
    return form === "generate" ? answerGenerate(call, read) : answerInfer(call, read);
  }

  async #generate(
    directory: ModelDirectory,
    { tenant, path, key, body }: LineRequest,
    budget: ModelCall["budget"],
  ): Promise<Reply> {
    const { inference, limits } = this.#settings;
    await admitBody(body, textBodyLimit(limits));
    const parse = path === "/v1/completions" ? parseCompletionRequest : parseChatRequest;
    const terms = { tenant, budget, deadlineMs: usualDeadline(limits), background: false };
    return answerWhole(parse(parseRequestJson(body), directory, key, terms), inference, never());
  }
}

/** @throws InferenceError if the body is too large for its path */
async function admitBody(body: Buffer, maxBytes: number): Promise<void> {
  if (body.length > maxBytes) throw bodyTooLarge(maxBytes);
  await turnOfItsOwn(body.length);
}

/** A batch waits for all of its lines. */
function stays(): void {}

function never(): AbortSignal {
  return new AbortController().signal;
}
