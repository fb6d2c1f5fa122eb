/**
 * A sequence's state at rest: a frame of its state tensors that says which step it follows and carries a checksum. A checkpoint that is not
 * exactly the one the step continues is refused: a lost or spoiled state is an error, never a silent zero.
 */
import { crc32 } from "node:zlib";
import { decodeFrame, encodeFrame, type Frame, type Tensor } from "#shared/frame.js";
import { InferenceError } from "#shared/errors.js";

export interface Checkpoint {
  readonly frame: Buffer;
  /** Views of `frame`. */
  readonly tensors: readonly Tensor[];
}

/** @param version entry id of the step that made this state. */
export function encodeCheckpoint(version: string, tensors: readonly Tensor[]): Checkpoint {
  const frame = encodeFrame({ version, crc: checksum(tensors) }, tensors);
  let offset = frame.length - tensors.reduce((sum, { data }) => sum + data.length, 0);
  const views = tensors.map((tensor) => {
    const data = frame.subarray(offset, offset + tensor.data.length);
    offset += data.length;
    return { ...tensor, data };
  });
  return { frame, tensors: views };
}

/** @throws InferenceError `state_corrupt` or, when it belongs to another step, `state_lost`. */
export function decodeCheckpoint(frame: Buffer, version: string): Checkpoint {
  const { meta, tensors } = readWhole(frame);
  if (meta["version"] !== version) throw stateLost();
  return { frame, tensors };
}

function readWhole(frame: Buffer): Frame {
  try {
    const decoded = decodeFrame(frame);
    if (decoded.meta["crc"] === checksum(decoded.tensors)) return decoded;
  } catch (cause) {
    throw new InferenceError("state_corrupt", "the sequence's checkpoint cannot be read", { cause });
  }
  throw new InferenceError("state_corrupt", "the sequence's checkpoint does not match its checksum");
}

export function stateLost(): InferenceError {
  return new InferenceError("state_lost", "the sequence's state is gone although it has committed steps");
}

function checksum(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { name, datatype, shape, data }) => {
    return crc32(data, crc32(`${name} ${datatype} ${shape.join()}`, sum));
  }, 0);
}
