/** Renders the result of a job, as the path that answers at once renders it. */
import type { TokenRecord } from "#shared/contract/generation.js";
import { tokenRecord } from "#shared/contract/generation.js";
import { readOutcome, stepOf } from "#shared/contract/outcome.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { decodeFrame } from "#shared/frame.js";
import { encodeRequestId, parsePin, type RequestAddress } from "#shared/queue/address.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { outcomeKey } from "#shared/queue/keys.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { collectAnswer, type WholeAnswer } from "../generation/collect.js";
import { jsonReply, type Reply } from "../http/reply.js";
import { renderGenerate } from "../kserve/http/generate-response.js";
import { renderInfer } from "../kserve/http/infer-response.js";
import type { TensorPrinter } from "../kserve/http/tensor-printer.js";
import { outputTensor } from "../kserve/text-tensors.js";
import { chatRenderer } from "../openai/chat.js";
import { completionRenderer } from "../openai/completions.js";
import { headOf, totalUsage } from "../openai/request.js";
import type { Shown } from "./prepare.js";

export interface ResultSettings {
  readonly redis: RedisClient;
  readonly printer: TensorPrinter;
}

/** Whether Redis still kept the result of a completed job, at the time of the view. */
export function isKept(view: JobView): boolean {
  return (resultExpiresAt(view) ?? 0) > view.seenAt && (view.resultBytes > 0 || view.records > 0);
}

/** @returns ms since 1970; undefined if there is no result, or none yet */
export function resultExpiresAt({ state, endedAt, keptMs }: JobView): number | undefined {
  return state === "completed" && endedAt !== undefined ? endedAt + keptMs : undefined;
}

/**
 * @param view of a job that has completed, and whose result Redis keeps
 * @param address of the request that has run the job
 * @throws InferenceError `result_expired` if the result has gone meanwhile
 */
export async function renderResult(
  { redis, printer }: ResultSettings,
  view: JobView,
  address: RequestAddress,
): Promise<Reply> {
  const shown = JSON.parse(view.shown) as Shown;
  const { version, digest } = parsePin(view.pin);
  const model = { name: address.model, version };
  if (shown.as === "tensors") {
    const body = await redis.hgetBuffer(outcomeKey(address), "body");
    if (body === null || body.length === 0) throw fixedError("result_expired", "usual");
    const outcome = readOutcome("result", body);
    if (outcome.kind === "error") throw new InferenceError(outcome.code, outcome.message);
    const { meta, tensors } = decodeFrame(outcome.body);
    if (view.type === "generate") return jsonText(renderGenerate(model, shown.id, tensors));
    const isText = ({ name }: { readonly name: string }) =>
      !shown.outputs.some((one) => one.name === name && one.binary);
    const printed = await printer.printLarge(tensors.filter(isText));
    return renderInfer(shown.id, model, shown.outputs, tensors, stepOf(meta), printed);
  }
  const answer = await wholeAnswer(redis, address, shown.choices);
  if (shown.as === "text") {
    const texts = answer.choices.map(({ text }) => shown.prefix + text);
    const tensor = outputTensor(shown.output, texts, shown.shape);
    if (view.type === "generate") return jsonText(renderGenerate(model, shown.id, [tensor]));
    return renderInfer(shown.id, model, shown.outputs, [tensor]);
  }
  const renderer = shown.as === "chat" ? chatRenderer(shown.choices) : completionRenderer(shown.choices, shown.echoes);
  const head = { id: encodeRequestId(address), model: { name: address.model, digest }, renderer };
  return jsonReply({
    ...headOf(head, renderer.wholeObject, view.endedAt ?? view.recordedAt),
    choices: answer.choices.map((choice, index) => renderer.renderChoice(choice, index, 0)),
    usage: totalUsage([answer.usage]),
  });
}

function jsonText(text: string): Reply {
  return { status: 200, headers: { "content-type": "application/json" }, body: [text] };
}

/** @throws InferenceError `result_expired` if the log is gone */
async function wholeAnswer(redis: RedisClient, address: RequestAddress, choices: number): Promise<WholeAnswer> {
  try {
    return await collectAnswer(logRecords(redis, address), choices);
  } catch (error) {
    // The log of a completed request has an end, unless the log is gone.
    if (error instanceof InferenceError && error.code === "cancelled") throw fixedError("result_expired", "usual");
    throw error;
  }
}

/** Reads a log page by page, so that the process serves other requests in between. */
async function* logRecords(redis: RedisClient, address: RequestAddress): AsyncGenerator<TokenRecord, void> {
  let from = 0;
  for (let more = true; more;) {
    const [page] = await readLogs(redis, [{ ...address, from }]);
    if (page?.said !== "records") return;
    for (const json of page.records) yield tokenRecord.parse(JSON.parse(json));
    from += page.records.length;
    more = page.more;
  }
}
