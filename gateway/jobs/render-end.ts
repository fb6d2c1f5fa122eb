/** Writes how a job has ended, as the path that answers at once writes it. */
import { encodeRequestId } from "#shared/queue/address.js";
import { errorReply } from "../formats/errors.js";
import { jsonReply, jsonTextReply, type Reply } from "../formats/reply.js";
import { renderGenerate } from "../formats/kserve/generate-response.js";
import { isBinary, renderInfer } from "../formats/kserve/infer-response.js";
import type { TensorPrinter } from "../formats/kserve/tensor-printer.js";
import { outputTensor } from "#shared/contract/texts.js";
import { chatRenderer } from "../formats/openai/chat.js";
import { completionRenderer } from "../formats/openai/completions.js";
import { headOf, totalUsage } from "../formats/openai/request.js";
import type { JobEnd, TensorResult, TextResult } from "./result.js";

/**
 * @param printer prints large tensors apart from the main thread
 * @throws InferenceError if an output has no form in JSON
 */
export async function renderEnd(end: JobEnd, printer: TensorPrinter): Promise<Reply> {
  switch (end.kind) {
    case "failure":
      return errorReply(end.error, end.type === "chat" || end.type === "completion" ? "openai" : "kserve");
    case "tensors":
      return renderTensors(end, printer);
    case "text":
      return renderText(end);
  }
}

async function renderTensors(
  { type, request, pin, shown, tensors, step }: TensorResult,
  printer: TensorPrinter,
): Promise<Reply> {
  const model = { name: request.model, version: pin.version };
  if (type === "generate") return jsonTextReply(renderGenerate(model, shown.id, tensors));
  const printed = await printer.printLarge(tensors.filter((tensor) => !isBinary(shown.outputs, tensor)));
  return renderInfer(shown.id, model, shown.outputs, tensors, step, printed);
}

function renderText({ type, request, pin, at, shown, answer }: TextResult): Reply {
  if (shown.as === "text") {
    const model = { name: request.model, version: pin.version };
    const texts = answer.choices.map(({ text }) => shown.prefix + text);
    const tensor = outputTensor(shown.output, texts, shown.shape);
    if (type === "generate") return jsonTextReply(renderGenerate(model, shown.id, [tensor]));
    return renderInfer(shown.id, model, shown.outputs, [tensor]);
  }
  const renderer = shown.as === "chat" ? chatRenderer(shown.choices) : completionRenderer(shown.choices, shown.echoes);
  const head = { id: encodeRequestId(request), model: { name: request.model, digest: pin.digest }, renderer };
  return jsonReply({
    ...headOf(head, renderer.wholeObject, at),
    choices: answer.choices.map((choice, index) => renderer.renderChoice(choice, index, 0)),
    usage: totalUsage([answer.usage]),
  });
}
