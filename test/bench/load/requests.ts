/** The bytes of every request of a load, made before the clock starts. */
import type { BenchModel } from "../support/models.js";
import { PATTERNS, STEPS, vectorAt, vectors } from "../support/patterns.js";

/**
 * @returns for each step of a sequence, the bytes of its whole HTTP request; steps with the same
 * bytes share a buffer
 */
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
  return stepRequest(name, {
    sequence: sequence + 1,
    start,
    input: { name: "X", shape: [1, size], datatype: "FP32" },
    data: Buffer.from(x.buffer, x.byteOffset, x.byteLength),
  });
}

export interface StepOf {
  /** The sequence's id. */
  readonly sequence: number;
  readonly start: boolean;
  readonly input: { readonly name: string; readonly shape: readonly number[]; readonly datatype: string };
  /** The input's elements, little-endian. */
  readonly data: Buffer;
  /** The API key; absent: none. */
  readonly key?: string | undefined;
}

/** @returns a step's whole HTTP request, with binary tensors both ways */
export function stepRequest(model: string, { sequence, start, input, data, key }: StepOf): Buffer {
  const json = Buffer.from(
    JSON.stringify({
      parameters: { sequence_id: sequence, sequence_start: start, sequence_end: false, binary_data_output: true },
      inputs: [{ ...input, parameters: { binary_data_size: data.length } }],
    }),
  );
  const head =
    `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n` +
    (key === undefined ? "" : `Authorization: Bearer ${key}\r\n`) +
    `Inference-Header-Content-Length: ${json.length}\r\nContent-Length: ${json.length + data.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), json, data]);
}
