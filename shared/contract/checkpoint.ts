/**
 * A sequence's stored state: a frame of the state tensors, with a checksum and the version, which
 * names the run that wrote the frame. A step accepts only the checkpoint that it continues. A lost
 * or damaged state is an error, never a silent zero.
 */
import { crc32 } from "node:zlib";
import { boot } from "../boot.js";
import { decodeFrame, encodeFrame, type Frame, type Tensor } from "../frame.js";
import { fixedError, type InferenceError } from "../errors.js";

export interface Checkpoint {
  /** Names the run that made the checkpoint. */
  readonly version: string;
  readonly frame: Buffer;
  /** The state, as views of `frame`. */
  readonly tensors: readonly Tensor[];
}

/**
 * Names runs of steps. The id of an entry is unique only in a lane, and a step may run several
 * times, on one or several workers. Each run writes under a name of its own, so a late worker never
 * changes the state from which a sequence continues.
 */
export class RunNames {
  /** The process's `boot` in base64url, which is shorter than hex. */
  readonly #boot: string;
  #runs = 0;

  constructor(boot: string) {
    this.#boot = Buffer.from(boot, "hex").toString("base64url");
  }

  next(entry: string): string {
    return `${entry}.${this.#boot}.${(this.#runs++).toString(36)}`;
  }
}

const ownNames = new RunNames(boot);

/** @param names the process's own; a simulation of several workers passes each worker's names */
export function nameRun(entry: string, names = ownNames): string {
  return names.next(entry);
}

/**
 * The `boot` of the process that made a checkpoint.
 * @param version from `nameRun`
 * @returns undefined for a version in another form
 */
export function bootOf(version: string): string | undefined {
  const [, own] = version.split(".");
  return own === undefined ? undefined : Buffer.from(own, "base64url").toString("hex");
}

/**
 * Copies the tensors into a frame.
 *
 * @param version from `nameRun`
 */
export function encodeCheckpoint(version: string, tensors: readonly Tensor[]): Checkpoint {
  const frame = encodeFrame({ version, crc: checksum(tensors) }, tensors);
  let offset = frame.length - tensors.reduce((sum, { data }) => sum + data.length, 0);
  const views = tensors.map(({ name, datatype, shape, data: { length } }) => {
    const data = frame.subarray(offset, offset + length);
    offset += length;
    return { name, datatype, shape, data };
  });
  return { version, frame, tensors: views };
}

/**
 * @param version of the wanted state
 * @throws InferenceError `state_corrupt`, or `state_lost` if another run wrote the frame
 */
export function decodeCheckpoint(frame: Buffer, version: string): Checkpoint {
  const checkpoint = openCheckpoint(frame);
  if (checkpoint.version !== version) throw stateLost();
  return checkpoint;
}

/**
 * The same for any version.
 * @throws InferenceError `state_corrupt`
 */
export function openCheckpoint(frame: Buffer): Checkpoint {
  const { meta, tensors } = readWhole(frame);
  return { version: String(meta["version"]), frame, tensors };
}

function readWhole(frame: Buffer): Frame {
  try {
    const decoded = decodeFrame(frame);
    if (decoded.meta["crc"] === checksum(decoded.tensors)) return decoded;
  } catch (cause) {
    throw fixedError("state_corrupt", "unreadable", { cause });
  }
  throw fixedError("state_corrupt", "checksum");
}

export function stateLost(): InferenceError {
  return fixedError("state_lost", "checkpointGone");
}

function checksum(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { name, datatype, shape, data }) => {
    const told = crc32(`${name} ${datatype} ${shape.join()}`, sum);
    // An empty buffer may have no address, and zlib answers a null pointer with 0.
    return data.length === 0 ? told : crc32(data, told);
  }, 0);
}
