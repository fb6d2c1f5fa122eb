/** A tensor model's own thread: takes stacked tensors, runs the graph, gives the outputs back. */
import { serveThread } from "../thread/serve.js";
import type { GraphMetadata, PlainTensor, RunAnswer, RunRequest, ThreadOptions } from "./protocol.js";
import { datatypeOf, describe, makeTensor, openSession, type OrtTensor, type Session } from "./runtime.js";
import { decodeStrings, encodeStrings } from "./strings.js";

function toOrt({ datatype, shape, data }: PlainTensor): OrtTensor {
  return makeTensor(datatype, datatype === "BYTES" ? decodeStrings(data) : data, shape);
}

function fromOrt(name: string, tensor: OrtTensor): PlainTensor {
  const datatype = datatypeOf(tensor);
  if (datatype === undefined) throw new TypeError(`output '${name}' has the unsupported type ${tensor.type}`);
  if (tensor.type === "string")
    return { name, datatype, shape: tensor.dims, data: encodeStrings(tensor.data as string[]) };
  const { buffer, byteOffset, byteLength } = tensor.data as Float32Array<ArrayBuffer>;
  return { name, datatype, shape: tensor.dims, data: new Uint8Array(buffer, byteOffset, byteLength) };
}

async function run(session: Session, { inputs, outputs }: RunRequest): Promise<RunAnswer> {
  const feeds = Object.fromEntries(inputs.map((tensor) => [tensor.name, toOrt(tensor)]));
  const startedAt = performance.now();
  const results = await session.run(feeds, outputs);
  const ranMs = performance.now() - startedAt;
  const tensors = outputs.map((name) => {
    const tensor = results[name];
    if (tensor === undefined) throw new TypeError(`the model gave no output '${name}'`);
    return fromOrt(name, tensor);
  });
  return { outputs: tensors, ranMs };
}

await serveThread<ThreadOptions, RunRequest, GraphMetadata, RunAnswer>(async (options) => {
  const session = await openSession(options);
  return {
    ready: { inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) },
    async answer(request) {
      const answer = await run(session, request);
      return { answer, transfer: [...new Set(answer.outputs.map(({ data }) => data.buffer))] };
    },
  };
});
