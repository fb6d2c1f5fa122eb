/**
 * A sequence's state at rest: a frame of its state tensors, with the run that wrote it and a
 * checksum. A checkpoint that is not exactly the one which a step continues is refused. A lost or
 * spoiled state is an error, never a silent zero.
 */
import { crc32 } from "node:zlib";
import { boot } from "../boot.js";
import { decodeFrame, encodeFrame, type Frame, type Tensor } from "../frame.js";
import { fixedError, type InferenceError } from "../errors.js";

export interface Checkpoint {
  /** Names the run that made it. */
  readonly version: string;
  readonly frame: Buffer;
  /** The state, as views of `frame`. */
  readonly tensors: readonly Tensor[];
}

/**
 * Names runs of steps. The id of an entry is unique in its lane only, and a step may run more than
 * once, here or elsewhere; each run writes under a name of its own. So a worker that is too late
 * never changes what a sequence goes on from.
 */
export class RunNames {
  /** Tells the process from all others; shorter than its `boot` itself. */
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

/** @param names those of this process, unless it is one of several in a simulation */
export function nameRun(entry: string, names = ownNames): string {
  return names.next(entry);
}

/**
 * Which process made a checkpoint, by its `boot`.
 * @param version from `nameRun`
 * @returns undefined for a version that has another form
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
  const views = tensors.map((tensor) => {
    const data = frame.subarray(offset, offset + tensor.data.length);
    offset += data.length;
    return { ...tensor, data };
  });
  return { version, frame, tensors: views };
}

/**
 * @param version of the state that is wanted
 * @throws InferenceError `state_corrupt`, or `state_lost` when the frame is another run's
 */
export function decodeCheckpoint(frame: Buffer, version: string): Checkpoint {
  const { meta, tensors } = readWhole(frame);
  if (meta["version"] !== version) throw stateLost();
  return { version, frame, tensors };
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
    // Without bytes there may be no address, and zlib answers a null pointer with 0.
    return data.length === 0 ? told : crc32(data, told);
  }, 0);
}
