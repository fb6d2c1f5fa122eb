/**
 * A decoder in Hugging Face's layout, run by ONNX Runtime directly. The output `present` becomes
 * the input `past`, uncopied.
 */
import { join } from "node:path";
import * as ort from "onnxruntime-node";
import { floats, floatsOf, openSession } from "../bare/session.js";

interface Cache {
  readonly past: string;
  readonly present: string;
  readonly heads: number;
  readonly dim: number;
}

/** A batch of rows after a forward pass. */
export interface Pass {
  readonly rows: number;
  /** How many positions every row's cache has. */
  readonly length: number;
  /** The token with the largest logit after every row's last token. */
  readonly next: readonly number[];
  /** By how much each row's largest logit exceeds the second largest. */
  readonly margins: readonly number[];
  readonly caches: Readonly<Record<string, ort.Tensor>>;
}

export class Decoder {
  readonly #session: ort.InferenceSession;
  readonly #caches: readonly Cache[];
  readonly #outputs: readonly string[];
  readonly #positions: boolean;
  /** Every attention mask is a piece of this array, because no row has padding. */
  #ones = new BigInt64Array(0);

  private constructor(session: ort.InferenceSession) {
    this.#session = session;
    this.#caches = session.inputMetadata.flatMap((input) => (input.isTensor ? cachesOf(input) : []));
    this.#outputs = ["logits", ...this.#caches.map(({ present }) => present)];
    this.#positions = session.inputNames.includes("position_ids");
  }

  /** @param folder a model in Hugging Face's layout */
  static async open(folder: string): Promise<Decoder> {
    // These decoders are too small for two threads: a single thread makes more tokens.
    return new Decoder(await openSession(join(folder, "onnx", "model.onnx"), 1));
  }

  /** Takes in prompts of equal length, all positions in a single pass. */
  begin(prompts: readonly (readonly number[])[]): Promise<Pass> {
    const rows = prompts.length;
    const caches = Object.fromEntries(
      this.#caches.map(({ past, heads, dim }) => [past, floats(new Float32Array(0), [rows, heads, 0, dim])]),
    );
    return this.go({ rows, length: 0, next: [], margins: [], caches }, prompts);
  }

  /** Takes in each row's next tokens, by default the row's own choice. */
  async go(pass: Pass, tokens: readonly (readonly number[])[] = pass.next.map((token) => [token])): Promise<Pass> {
    const { rows, caches } = pass;
    const steps = tokens[0]?.length ?? 0;
    const length = pass.length + steps;
    const feeds: Record<string, ort.Tensor> = {
      ...caches,
      input_ids: integers(BigInt64Array.from(tokens.flat(), BigInt), [rows, steps]),
      attention_mask: integers(this.#mask(rows * length), [rows, length]),
    };
    if (this.#positions) {
      const positions = BigInt64Array.from({ length: rows * steps }, (_, i) => BigInt(pass.length + (i % steps)));
      feeds["position_ids"] = integers(positions, [rows, steps]);
    }
    const ran = await this.#session.run(feeds, [...this.#outputs]);
    const logits = ran["logits"];
    const vocab = logits?.dims[2] ?? 0;
    const choices = Array.from({ length: rows }, (_, row) => {
      const at = (row * steps + steps - 1) * vocab;
      return largest(floatsOf(logits).subarray(at, at + vocab));
    });
    return {
      rows,
      length,
      next: choices.map(({ token }) => token),
      margins: choices.map(({ margin }) => margin),
      caches: Object.fromEntries(this.#caches.map(({ past, present }) => [past, ran[present] as ort.Tensor])),
    };
  }

  #mask(size: number): BigInt64Array {
    if (this.#ones.length < size) this.#ones = new BigInt64Array(2 * size).fill(1n);
    return this.#ones.subarray(0, size);
  }
}

function cachesOf({ name, shape }: { readonly name: string; readonly shape: readonly (number | string)[] }): Cache[] {
  if (!name.startsWith("past_key_values.")) return [];
  const [, heads, , dim] = shape;
  if (typeof heads !== "number" || typeof dim !== "number") throw new TypeError(`${name} does not say its shape`);
  return [{ past: name, present: name.replace("past_key_values.", "present."), heads, dim }];
}

function integers(data: BigInt64Array, shape: readonly number[]): ort.Tensor {
  return new ort.Tensor("int64", data, shape);
}

/** Finds the largest logit, the first of several, as every argmax does. */
export function largest(logits: Float32Array): { readonly token: number; readonly margin: number } {
  let token = 0;
  let most = -Infinity;
  let second = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id] ?? Number.NaN;
    if (logit > most) {
      second = most;
      most = logit;
      token = id;
    } else if (logit > second) {
      second = logit;
    }
  }
  return { token, margin: most - second };
}
