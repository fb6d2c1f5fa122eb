/**
 * Streams audio through `silero-vad`, chunk by chunk, as a single sequence, and prints the spans of
 * speech. Every chunk is a request, for any worker.
 *
 *   node infra/demos/silero-vad/listen.mjs [FILE.wav] [--pace] [--url http://localhost:8000]
 *
 * The file has 16-bit samples at 16 kHz, in one channel; without a file, a made-up voice speaks.
 * With --pace a second of audio takes a second.
 */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { RATE, speak } from "./voice.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    pace: { type: "boolean", default: false },
    url: { type: "string", default: process.env["BATON_URL"] ?? "http://localhost:8000" },
  },
});
/** Samples of a request. */
const CHUNK = 512;
const CHUNK_SECONDS = CHUNK / RATE;
const SPEECH = 0.5;

const [file] = positionals;
const samples = file === undefined ? speak(5.8) : readWav(file);
const sequence = `audio-${Date.now()}`;
/** @type {number[]} the probability of speech in each chunk */
const heard = [];
for (let at = 0; at + CHUNK <= samples.length; at += CHUNK) {
  const probability = await step(samples.subarray(at, at + CHUNK), at === 0, at + 2 * CHUNK > samples.length);
  heard.push(probability);
  process.stdout.write(" .:-=+*#%@"[Math.min(9, Math.floor(probability * 10))] ?? "");
  if (values.pace) await pause(CHUNK_SECONDS * 1_000);
}
process.stdout.write("\n");
for (const { from, to } of spans(heard)) console.log(`speech from ${from.toFixed(1)} s to ${to.toFixed(1)} s`);

/**
 * @param {Float32Array} chunk
 * @param {boolean} start whether this is the first chunk
 * @param {boolean} end whether this is the last chunk
 * @returns {Promise<number>} the probability of speech
 */
async function step(chunk, start, end) {
  const header = JSON.stringify({
    parameters: { sequence_id: sequence, sequence_start: start, sequence_end: end },
    inputs: [
      { name: "input", datatype: "FP32", shape: [1, CHUNK], parameters: { binary_data_size: chunk.byteLength } },
    ],
  });
  const response = await fetch(`${values.url}/v2/models/silero-vad/infer`, {
    method: "POST",
    headers: {
      "Inference-Header-Content-Length": String(Buffer.byteLength(header)),
      "Idempotency-Key": `${sequence}-${heard.length}`,
    },
    body: Buffer.concat([Buffer.from(header), Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)]),
  });
  /** @type {{ error?: string, outputs?: [{ data: [number] }] }} */
  const { error, outputs } = JSON.parse(await response.text());
  if (outputs === undefined) throw new Error(error);
  return outputs[0].data[0];
}

/**
 * @param {readonly number[]} probabilities
 * @returns {{ from: number, to: number }[]} spans of speech, in seconds
 */
function spans(probabilities) {
  /** @type {{ from: number, to: number }[]} */
  const found = [];
  for (const [i, probability] of probabilities.entries()) {
    const last = found.at(-1);
    const [from, to] = [i * CHUNK_SECONDS, (i + 1) * CHUNK_SECONDS];
    if (probability < SPEECH) continue;
    // Shorter pauses are part of the speech.
    if (last !== undefined && from - last.to < 0.1) last.to = to;
    else found.push({ from, to });
  }
  return found;
}

/**
 * @param {string} path
 * @returns {Float32Array}
 */
function readWav(path) {
  const bytes = readFileSync(path);
  const riff = bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WAVE";
  let format = "";
  for (let at = riff ? 12 : bytes.length; at + 8 <= bytes.length;) {
    const size = bytes.readUInt32LE(at + 4);
    const [name, from] = [bytes.toString("latin1", at, at + 4), at + 8];
    if (name === "fmt ") {
      const channels = bytes.readUInt16LE(from + 2);
      format = `${bytes.readUInt16LE(from + 14)} bits at ${bytes.readUInt32LE(from + 4)} Hz, ${channels} channel(s)`;
    } else if (name === "data" && format === `16 bits at ${RATE} Hz, 1 channel(s)`) {
      const count = Math.floor(Math.min(size, bytes.length - from) / 2);
      return Float32Array.from({ length: count }, (_, i) => bytes.readInt16LE(from + 2 * i) / 32_768);
    }
    at = from + size + (size % 2);
  }
  console.error(`${path} is no WAV file of 16 bits at ${RATE} Hz in 1 channel${format && `: it has ${format}`}.`);
  process.exit(1);
}
