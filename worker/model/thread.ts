/** A model's own thread: takes stacked tensors, runs the graph, gives the outputs back. */
import { parentPort, workerData } from "node:worker_threads";
import type { PlainTensor, RunRequest, ThreadMessage, ThreadOptions } from "./protocol.js";
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

function post(message: ThreadMessage, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transfer);
}

async function run(session: Session, { id, inputs, outputs }: RunRequest): Promise<void> {
  try {
    const feeds = Object.fromEntries(inputs.map((tensor) => [tensor.name, toOrt(tensor)]));
    const startedAt = performance.now();
    const results = await session.run(feeds, outputs);
    const ranMs = performance.now() - startedAt;
    const tensors = outputs.map((name) => {
      const tensor = results[name];
      if (tensor === undefined) throw new TypeError(`the model gave no output '${name}'`);
      return fromOrt(name, tensor);
    });
    const transfer = new Set(tensors.map(({ data }) => data.buffer));
    post({ kind: "result", id, outputs: tensors, ranMs }, [...transfer]);
  } catch (error) {
    post({ kind: "error", id, reason: error instanceof Error ? error.message : String(error) });
  }
}

async function main(options: ThreadOptions): Promise<void> {
  let session: Session;
  try {
    session = await openSession(options);
    post({
      kind: "ready",
      graph: { inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) },
    });
  } catch (error) {
    post({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
    return;
  }
  let last = Promise.resolve();
  parentPort?.on("message", (request: RunRequest) => {
    last = last.then(() => run(session, request));
  });
}

await main(workerData as ThreadOptions);
