/**
 * The one format of tensors between processes: requests, outcomes and checkpoints are all frames,
 * in Redis and on NATS. A frame is a KServe v2 body with the binary tensor extension, after the
 * length of its header:
 *
 *     u32 LE header length | header (JSON, UTF-8) | raw little-endian tensors, in header order
 *
 * Only Baton's own processes write frames: a gateway validates the client's request before it makes
 * a frame.
 */
import type { Datatype } from "./model/datatype.js";

export interface Tensor {
  readonly name: string;
  readonly datatype: Datatype;
  /** Full shape, with the batch dimension if the model has one. */
  readonly shape: readonly number[];
  /**
   * Row-major little-endian elements; each element of a BYTES tensor follows its u32 LE length. May
   * be a view of a larger buffer.
   */
  readonly data: Buffer;
}

export type FrameMeta = Readonly<Record<string, unknown>>;

export interface Frame {
  readonly meta: FrameMeta;
  readonly tensors: readonly Tensor[];
}

interface Header {
  meta: FrameMeta;
  tensors: { name: string; datatype: Datatype; shape: number[]; bytes: number }[];
}

/** Checks nothing, because the caller has validated the tensors. */
export function encodeFrame(meta: FrameMeta, tensors: readonly Tensor[]): Buffer {
  const header = JSON.stringify({
    meta,
    tensors: tensors.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, bytes: data.length })),
  });
  const headerLength = Buffer.byteLength(header);
  let total = 4 + headerLength;
  for (const tensor of tensors) total += tensor.data.length;
  const frame = Buffer.allocUnsafe(total);
  frame.writeUInt32LE(headerLength, 0);
  frame.write(header, 4);
  let offset = 4 + headerLength;
  for (const tensor of tensors) offset += tensor.data.copy(frame, offset);
  return frame;
}

/**
 * @returns tensors that are views of `frame`, not copies
 * @throws Error if the frame is incomplete
 */
export function decodeFrame(frame: Buffer): Frame {
  if (frame.length < 4) throw new Error("frame is shorter than its length prefix");
  const headerEnd = 4 + frame.readUInt32LE(0);
  if (headerEnd > frame.length) throw new Error("frame is shorter than its header");
  const header = JSON.parse(frame.toString("utf8", 4, headerEnd)) as Header;
  let offset = headerEnd;
  const tensors = header.tensors.map(({ name, datatype, shape, bytes }) => {
    const data = frame.subarray(offset, offset + bytes);
    offset += bytes;
    return { name, datatype, shape, data };
  });
  if (offset !== frame.length) throw new Error("frame length does not match its tensors");
  return { meta: header.meta, tensors };
}
