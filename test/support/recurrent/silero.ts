/**
 * Silero VAD, a published recurrent model that finds speech in audio: the three files of the
 * package `@ricky0123/vad-web`, as a repository and as bare loops, and many streams of audio at a
 * time through a fleet.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../fleet/root.js";
import { seededRandom } from "../fleet/random.js";
import { readUntil } from "../until.js";
import { BareLoop, tensorOf, type Loop } from "./bare-loop.js";

const published = join(root, "node_modules/@ricky0123/vad-web/dist");

interface Silero {
  readonly file: string;
  /** Samples of a chunk, at 16 kHz. */
  readonly chunk: number;
  readonly states: Loop["states"];
}

export const sileros: Readonly<Record<string, Silero>> = {
  "silero-legacy": { file: "silero_vad_legacy.onnx", chunk: 1536, states: { h: "hn", c: "cn" } },
  "silero-v5": { file: "silero_vad_v5.onnx", chunk: 512, states: { state: "stateN" } },
  "silero-v6": { file: "silero_vad_v6.onnx", chunk: 512, states: { state: "stateN" } },
};

/** All settings that the models need beside their files: two lines and the sampling rate. */
const CONFIG = `max_batch_size: 64
sequence_batching { max_sequence_idle_microseconds: 600000000 }
parameters { key: "constant_input:sr" value: { string_value: "16000" } }
`;

/** @param config of all models */
export function sileroRepository(folder: string, config = CONFIG): string {
  for (const [name, { file }] of Object.entries(sileros)) {
    mkdirSync(join(folder, name, "1"), { recursive: true });
    cpSync(join(published, file), join(folder, name, "1/model.onnx"));
    writeFileSync(join(folder, name, "config.pbtxt"), config);
  }
  return folder;
}

function sileroOf(model: string): Silero {
  const found = sileros[model];
  if (found === undefined) throw new Error(`no model ${model}`);
  return found;
}

/**
 * A chunk of a sequence's audio: a voice that comes and goes in noise, with a pitch of the
 * sequence's own. The same arguments give the same audio.
 */
export function audio(sequence: number, step: number, samples: number): Float32Array {
  const random = seededRandom(sequence * 100_003 + step);
  const pitch = 0.04 + 0.003 * sequence;
  return Float32Array.from({ length: samples }, (_, i) => {
    const at = step * samples + i;
    const loud = Math.max(0, Math.sin(at / 2_500 + sequence));
    const voice = Math.sin(pitch * at) + 0.5 * Math.sin(2 * pitch * at) + 0.25 * Math.sin(5 * pitch * at);
    return 0.3 * loud * voice + 0.04 * (random.unit() - 0.5);
  });
}

/** In Hz. A chunk has `chunk` samples at this rate, and half as many at half the rate. */
const RATE = 16_000;

/**
 * @param rates of the sequences, in turn
 * @returns for each sequence the probability of speech in each of its chunks
 */
export async function bareSpeech(
  model: string,
  sequences: number,
  steps: number,
  rates: readonly number[] = [RATE],
): Promise<number[][]> {
  const loop = await bareLoop(model, 1);
  const speech: number[][] = [];
  for (let sequence = 0; sequence < sequences; sequence++) {
    speech.push(...(await listen(loop, model, [sequence], steps, rates[sequence % rates.length] ?? 0)));
  }
  return speech;
}

/**
 * The same, with two sequences in each run. ONNX Runtime multiplies a single row by another kernel
 * than several rows, and the two kernels round differently. Two rows and 16 give the same to the
 * last bit. For one of the models, the kernels' results differ by more than 1e-5 over a thousand
 * steps.
 * @param sequences an even number
 */
export async function bareSpeechInPairs(model: string, sequences: number, steps: number): Promise<number[][]> {
  const loop = await bareLoop(model, 2);
  const speech: number[][] = [];
  for (let sequence = 0; sequence < sequences; sequence += 2) {
    speech.push(...(await listen(loop, model, [sequence, sequence + 1], steps, RATE)));
  }
  return speech;
}

function bareLoop(model: string, rows: number): Promise<BareLoop> {
  const { file, states } = sileroOf(model);
  return BareLoop.open({ file: join(published, file), states, rows });
}

/** Runs these sequences together from their first chunk on. */
async function listen(loop: BareLoop, model: string, sequences: readonly number[], steps: number, rate: number) {
  const rows = sequences.length;
  const samples = (sileroOf(model).chunk * rate) / RATE;
  loop.begin();
  const sr = tensorOf("int64", [], [rate]);
  const speech = sequences.map((): number[] => []);
  for (let step = 0; step < steps; step++) {
    const heard = sequences.flatMap((sequence) => [...audio(sequence, step, samples)]);
    const { output } = await loop.step({ input: tensorOf("float32", [rows, samples], heard), sr });
    for (const [row, of] of speech.entries()) of.push(output?.[row] ?? NaN);
  }
  return speech;
}

export interface Streams {
  /** The gateways. Each sequence keeps to a single gateway. */
  readonly urls: readonly string[];
  readonly model: string;
  readonly sequences: number;
  readonly steps: number;
  /** A sequence that sends a chunk which is too short before its step of this number. */
  readonly bad?: { readonly sequence: number; readonly step: number };
  /** The sampling rates that sequences name, in turn. If absent, sequences name none. */
  readonly rates?: readonly number[];
}

export interface Heard {
  /** For each sequence the probability of speech in each of its chunks. */
  readonly speech: readonly (readonly number[])[];
  /** The status of the answer to the bad chunk. */
  readonly refused: number | undefined;
}

/**
 * Runs all sequences at once. Each sequence sends a chunk as soon as it has the answer to the chunk
 * before.
 */
export async function streamAudio({ urls, model, sequences, steps, bad, rates }: Streams): Promise<Heard> {
  const { chunk } = sileroOf(model);
  let refused: number | undefined;
  const speech = await Promise.all(
    Array.from({ length: sequences }, async (_, sequence) => {
      const url = `${urls[sequence % urls.length] ?? ""}/v2/models/${model}/infer`;
      const heard: number[] = [];
      const rate = rates?.[sequence % rates.length];
      const samples = (chunk * (rate ?? RATE)) / RATE;
      for (let step = 0; step < steps; step++) {
        if (bad?.sequence === sequence && bad.step === step) {
          refused = (await send(url, `${model}-${sequence}`, "bad", new Float32Array(10), {})).status;
        }
        const flags = { sequence_start: step === 0, sequence_end: step === steps - 1 };
        const answer = await send(
          url,
          `${model}-${sequence}`,
          String(step),
          audio(sequence, step, samples),
          flags,
          rate,
        );
        const { error, outputs } = (await answer.json()) as { error?: string; outputs?: [{ data: number[] }] };
        if (outputs === undefined) throw new Error(`sequence ${sequence}, step ${step}: ${error}`);
        heard.push(outputs[0].data[0] ?? NaN);
      }
      return heard;
    }),
  );
  return { speech, refused };
}

/** Sends the samples as bytes. Repeats a request without an answer, which takes effect once. */
async function send(
  url: string,
  id: string,
  step: string,
  samples: Float32Array,
  flags: object,
  rate?: number,
): Promise<Response> {
  const shape = [1, samples.length];
  const parameters = { binary_data_size: samples.byteLength };
  const header = JSON.stringify({
    parameters: { sequence_id: id, ...flags },
    inputs: [
      { name: "input", datatype: "FP32", shape, parameters },
      ...(rate === undefined ? [] : [{ name: "sr", datatype: "INT64", shape: [], data: [rate] }]),
    ],
  });
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  const body = Buffer.concat([Buffer.from(header), bytes]);
  const headers = {
    "inference-header-content-length": String(Buffer.byteLength(header)),
    "idempotency-key": `${id}-${step}`,
  };
  const post = () => fetch(url, { method: "POST", body, headers }).catch(unavailable);
  return readUntil(post, ({ status }) => status !== 503, { patienceMs: 10_000, everyMs: 100 });
}

/** The answer to count if a gateway is out of reach: the gateway cannot answer now. */
function unavailable(error: unknown): Response {
  return Response.json({ error: String(error) }, { status: 503 });
}
