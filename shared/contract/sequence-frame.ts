/**
 * A checkpoint that a client exports and imports: a frame (frame.ts) of the state's tensors, with
 * the step, the model, the digest of the model's files, and a checksum over all of the frame. A
 * client may send any bytes as such a frame, so the decoder checks every part, unlike with other
 * frames.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { fixedError } from "../errors.js";
import { decodeFrame, encodeFrame, type Frame, type Tensor } from "../frame.js";
import { isDatatype } from "../model/datatype.js";
import { hasItsBytes } from "../model/tensor-bytes.js";

/** The metadata of a frame, without the checksum. */
const facts = z.strictObject({
  format: z.literal("baton-sequence-1"),
  /** Number of the last step, counted from START. No sequence has more steps than this limit. */
  step: z
    .int()
    .positive()
    .max(2 ** 31),
  model: z.string(),
  version: z.string(),
  /** The beginning of the digest of the model's configuration and files, as in pins. */
  digest: z.string(),
  /** Whether the sequence is in the initial state. If so, the frame has no tensors. */
  initial: z.boolean(),
});
const meta = facts.extend({ checksum: z.string() });

export interface SequenceFrame {
  readonly step: number;
  readonly model: string;
  readonly version: string;
  readonly digest: string;
  /** The state; undefined for the initial state. */
  readonly tensors: readonly Tensor[] | undefined;
}

export function encodeSequenceFrame({ step, model, version, digest, tensors }: SequenceFrame): Buffer {
  const told = { format: "baton-sequence-1", step, model, version, digest, initial: tensors === undefined } as const;
  return encodeFrame({ ...told, checksum: checksum(told, tensors ?? []) }, tensors ?? []);
}

/**
 * @returns tensors that are views of `bytes`
 * @throws InferenceError `frame_corrupt` for bytes that `encodeSequenceFrame` has not made
 */
export function decodeSequenceFrame(bytes: Buffer): SequenceFrame {
  const { meta: given, tensors } = readWhole(bytes);
  const read = meta.safeParse(given);
  if (!read.success || !tensors.every(isWhole)) throw fixedError("frame_corrupt", "unreadable");
  const { checksum: expected, ...told } = read.data;
  if (checksum(told, tensors) !== expected) throw fixedError("frame_corrupt", "checksum");
  const { step, model, version, digest, initial } = told;
  if (initial && tensors.length > 0) throw fixedError("frame_corrupt", "unreadable");
  return { step, model, version, digest, tensors: initial ? undefined : tensors };
}

function readWhole(bytes: Buffer): Frame {
  try {
    return decodeFrame(bytes);
  } catch (cause) {
    throw fixedError("frame_corrupt", "unreadable", { cause });
  }
}

/** Whether a tensor's bytes fit the tensor's type and shape. */
function isWhole(tensor: Tensor): boolean {
  const { name, datatype, shape }: { name: unknown; datatype: unknown; shape: unknown } = tensor;
  if (typeof name !== "string" || typeof datatype !== "string" || !isDatatype(datatype)) return false;
  if (!Array.isArray(shape) || !shape.every((dim) => Number.isSafeInteger(dim) && Number(dim) >= 0)) return false;
  return hasItsBytes(tensor);
}

function checksum(told: z.infer<typeof facts>, tensors: readonly Tensor[]): string {
  const { format, step, model, version, digest, initial } = told;
  const hash = createHash("sha256").update(JSON.stringify([format, step, model, version, digest, initial]));
  for (const { name, datatype, shape, data } of tensors) {
    hash.update(JSON.stringify([name, datatype, shape, data.length])).update(data);
  }
  return hash.digest("base64url");
}
