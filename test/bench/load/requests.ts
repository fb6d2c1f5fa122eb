/** Every request that will be sent, as bytes, made before the clock starts. */
import type { BenchModel } from "../models.js";
import { PATTERNS, STEPS, vectorAt, vectors } from "../patterns.js";

/** @returns for each step of a sequence, the bytes of its whole HTTP request. Steps that send the same share their buffer. */
export function requestsOf(model: BenchModel, sequence: number): Buffer[] {
  const inputs = vectors(model.size);
  const made = new Map<string, Buffer>();
  return Array.from({ length: STEPS }, (_, step) => {
    const vector = vectorAt(sequence % PATTERNS, step);
    const start = step === 0;
    const key = `${vector} ${start}`;
    let request = made.get(key);
    if (request === undefined)
      made.set(key, (request = encode(model, sequence, start, inputs[vector] as Float32Array)));
    return request;
  });
}

function encode({ name, size }: BenchModel, sequence: number, start: boolean, x: Float32Array): Buffer {
  const data = Buffer.from(x.buffer, x.byteOffset, x.byteLength);
  const json = Buffer.from(
    JSON.stringify({
      parameters: { sequence_id: sequence + 1, sequence_start: start, sequence_end: false, binary_data_output: true },
      inputs: [{ name: "X", shape: [1, size], datatype: "FP32", parameters: { binary_data_size: data.length } }],
    }),
  );
  const head =
    `POST /v2/models/${name}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n` +
    `Inference-Header-Content-Length: ${json.length}\r\nContent-Length: ${json.length + data.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), json, data]);
}
