/**
 * One forward pass of a decoder: token ids and caches go in, the next token's logits and longer
 * caches come out.
 */
import { makeTensor, type OrtTensor, type Session } from "../onnx/runtime.js";
import { floatsOfHalves } from "../onnx/half-floats.js";
import { LoadError } from "../thread/load-error.js";
import type { KvArray, KvBlock, KvLayout } from "./kv.js";
import type { DecoderLayout } from "./layout.js";

export interface ForwardInput {
  /** Token ids as INT64 `[rows, steps]`. */
  readonly ids: BigInt64Array;
  /** Tokens per row. */
  readonly steps: number;
  /** Positions of the past that belong to each row. The rest, on the left, is padding. */
  readonly lengths: readonly number[];
  readonly past: KvBlock;
  /**
   * Memory for the longer caches: one array of the exact size per tensor, none shared with the
   * past. If absent, the pass makes new arrays, which become garbage after the pass.
   */
  readonly present?: readonly KvArray[];
}

export interface ForwardOutput {
  /** One view per row: the logits after its last token, one per token of the vocabulary. */
  readonly logits: readonly Float32Array[];
  /** The past and `steps` more positions. */
  readonly present: KvBlock;
}

/** A loaded model, ready for passes. */
export interface Decoder {
  readonly kv: KvLayout;
  /**
   * Whether padding on the left leaves a row's result the same. If not, only rows of the same
   * length may share a pass.
   */
  readonly padding: boolean;
  readonly forward: (input: ForwardInput) => Promise<ForwardOutput>;
}

/** A decoder right after the load. */
export interface OpenedDecoder extends Decoder {
  /** The model's logits after a few tokens, for the comparison with another device. */
  readonly probed: Float32Array;
}

/**
 * Runs the model before the first request, to find out whether the model runs and whether padding
 * changes its results.
 * @throws LoadError if the model gives fewer than `vocabSize` logits
 * @throws the runtime's error if the graph cannot run
 */
export async function openDecoder(session: Session, layout: DecoderLayout, vocabSize: number): Promise<OpenedDecoder> {
  const decoder = { kv: layout.kv, forward: (input: ForwardInput) => forward(session, layout, input) };
  const { plain, padded } = await probe(decoder);
  if (plain.length < vocabSize) {
    throw new LoadError(`the graph gives logits for ${plain.length} tokens, but the vocabulary has ${vocabSize}`);
  }
  return { ...decoder, padding: layout.attentionMask && close(plain, padded), probed: plain };
}

async function forward(session: Session, layout: DecoderLayout, input: ForwardInput): Promise<ForwardOutput> {
  const rows = input.lengths.length;
  const capacity = input.past.capacity + input.steps;
  const fetches: Record<string, OrtTensor | null> = { logits: null };
  for (const [t, { present, heads, dim }] of layout.kv.tensors.entries()) {
    const own = input.present?.[t];
    fetches[present] = own === undefined ? null : makeTensor(layout.kv.datatype, own, [rows, heads, capacity, dim]);
  }
  const results = await session.run(feeds(layout, input), fetches);
  const arrays = layout.kv.tensors.map(({ present, heads, dim }, t) => {
    const tensor = expect(results[present], present);
    // If the runtime wrote into the given array, its result is another tensor over the same memory.
    const array = input.present?.[t] ?? (tensor.data as KvArray);
    // Caches of the same size in another order would give each row its neighbour's cache.
    const wanted = [rows, heads, capacity, dim];
    if (tensor.dims.join() !== wanted.join() || array.length !== rows * heads * capacity * dim) {
      throw new TypeError(`the model gave '${present}' another shape than its past and the new tokens make`);
    }
    return array;
  });
  return { logits: lastLogits(expect(results["logits"], "logits"), rows), present: { rows, capacity, arrays } };
}

function expect(tensor: OrtTensor | undefined, name: string): OrtTensor {
  if (tensor === undefined) throw new TypeError(`the model gave no output '${name}'`);
  return tensor;
}

function feeds(layout: DecoderLayout, { ids, steps, lengths, past }: ForwardInput): Record<string, OrtTensor> {
  const rows = lengths.length;
  const fed: Record<string, OrtTensor> = { input_ids: makeTensor("INT64", ids, [rows, steps]) };
  const width = past.capacity + steps;
  if (layout.attentionMask) {
    const mask = new BigInt64Array(rows * width).fill(1n);
    for (const [row, length] of lengths.entries()) mask.fill(0n, row * width, row * width + past.capacity - length);
    fed["attention_mask"] = makeTensor("INT64", mask, [rows, width]);
  }
  if (layout.positionIds) {
    const positions = new BigInt64Array(rows * steps);
    for (const [row, length] of lengths.entries()) {
      for (let step = 0; step < steps; step++) positions[row * steps + step] = BigInt(length + step);
    }
    fed["position_ids"] = makeTensor("INT64", positions, [rows, steps]);
  }
  if (layout.logitsToKeep !== undefined) fed[layout.logitsToKeep] = makeTensor("INT64", BigInt64Array.of(1n), []);
  if (layout.cacheBranch) {
    fed["use_cache_branch"] = makeTensor("BOOL", Uint8Array.of(past.capacity > 0 ? 1 : 0), [1]);
  }
  for (const [t, { past: name, heads, dim }] of layout.kv.tensors.entries()) {
    const array = past.arrays[t] ?? new Float32Array(0);
    fed[name] = makeTensor(layout.kv.datatype, array, [rows, heads, past.capacity, dim]);
  }
  return fed;
}

/**
 * @returns the logits of each row's last position, even if the model gave logits for more positions
 */
function lastLogits(tensor: OrtTensor, rows: number): Float32Array[] {
  const [own, positions = 0, vocab = 0] = tensor.dims;
  if (positions === 0 || vocab === 0) throw new TypeError("the model gave empty logits");
  const all = tensor.data as Float32Array | Uint16Array;
  if (own !== rows || all.length !== rows * positions * vocab) {
    throw new TypeError(`the model gave logits of the shape [${tensor.dims.join(",")}] for ${rows} rows`);
  }
  return Array.from({ length: rows }, (_, row) => {
    const start = (row * positions + positions - 1) * vocab;
    const one = all.subarray(start, start + vocab);
    return one instanceof Uint16Array ? floatsOfHalves(one) : one;
  });
}

/** Ids that every vocabulary has. */
const PROBE = [1n, 2n, 3n, 4n, 5n];
const PADDING = 3;

/**
 * @returns the logits of one token twice: with its past unchanged, and with its past padded on the
 *   left
 */
async function probe({ kv, forward }: Pick<Decoder, "kv" | "forward">) {
  const head = PROBE.slice(0, -1);
  const last = BigInt64Array.from(PROBE.slice(-1));
  const nothing: KvBlock = { rows: 1, capacity: 0, arrays: emptyArrays(kv, 0) };
  const { present } = await forward({
    ids: BigInt64Array.from(head),
    steps: head.length,
    lengths: [0],
    past: nothing,
  });
  const plain = await forward({ ids: last, steps: 1, lengths: [head.length], past: present });
  const padded = await forward({ ids: last, steps: 1, lengths: [head.length], past: padLeft(kv, present) });
  const none = new Float32Array(0);
  return { plain: plain.logits[0] ?? none, padded: padded.logits[0] ?? none };
}

/** @returns arrays of zeros for a block of one row with this many positions */
export function emptyArrays({ tensors, datatype }: KvLayout, positions: number): KvArray[] {
  return tensors.map(({ heads, dim }) => {
    const size = heads * dim * positions;
    return datatype === "FP32" ? new Float32Array(size) : new Uint16Array(size);
  });
}

function padLeft(kv: KvLayout, block: KvBlock): KvBlock {
  const capacity = block.capacity + PADDING;
  const arrays = emptyArrays(kv, capacity);
  for (const [t, { heads, dim }] of kv.tensors.entries()) {
    for (let head = 0; head < heads; head++) {
      const start = head * block.capacity * dim;
      const source = block.arrays[t]?.subarray(start, start + block.capacity * dim);
      if (source !== undefined) arrays[t]?.set(source, (head * capacity + PADDING) * dim);
    }
  }
  return { rows: 1, capacity, arrays };
}

/**
 * Two logits are close if they differ by at most this share of the largest logit. Rounding stays
 * far below this share, and quantised models reach a fiftieth. A model that takes positions wrongly
 * differs far more.
 */
const TOLERANCE = 0.1;

function close(a: Float32Array, b: Float32Array): boolean {
  const scale = a.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6);
  return a.every((value, i) => Math.abs(value - (b[i] ?? Number.NaN)) <= TOLERANCE * scale);
}
