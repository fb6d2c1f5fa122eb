/** `infer` on a generator: one BYTES element in, and the whole text out, or with the parameter `stream` an event for each part of it. */
import { acceptedReply } from "../requests/prefer.js";
import { compress } from "./compress.js";
import type { ModelExchange } from "./exchange.js";
import { readTextGeneration, refuseRepeating } from "./generation-parameters.js";
import type { ReadRequest } from "./read-request.js";
import { renderInfer } from "./render-infer.js";
import { withHeaders, type Reply } from "./reply.js";
import { streamText, wholeText } from "./text-answer.js";
import { outputTensor, textOfInput } from "./text-tensor.js";
import type { ValidInfer } from "./validate-infer.js";

/** Undefined where the answer was a stream. @throws InferenceError */
export async function inferText(
  { incoming, outgoing, model, generate, limits }: ModelExchange,
  { id, textParameters }: ReadRequest,
  { inputs, outputs }: ValidInfer,
): Promise<Reply | undefined> {
  const [input] = inputs;
  if (input === undefined) throw new TypeError(`generator '${model.name}' announced no input`);
  const text = textOfInput(input, model.name);
  const generation = readTextGeneration(model, text, textParameters, incoming.headers, limits);
  if (generation.request.background) return acceptedReply((await generate(generation.request)).id);
  if (generation.stream === true) {
    refuseRepeating(generation);
    // Bytes have no place in an event, so all outputs are JSON.
    return streamText(generation, generate, outgoing, (texts) =>
      renderInfer(id, model, [], [outputTensor(texts)]).body.join(""),
    );
  }
  const { texts, headers } = await wholeText(generation, generate, outgoing);
  const reply = renderInfer(id, model, outputs, [outputTensor(texts)]);
  return withHeaders(await compress(reply, incoming.headers["accept-encoding"]), headers);
}
