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
  readonly meta: FrameMeta;
  readonly tensors: readonly {
    readonly name: string;
    readonly datatype: Datatype;
    readonly shape: readonly number[];
    readonly bytes: number;
  }[];
}

/**
 * Headers that were read, by their text: the frames of a model's requests mostly have the same. The
 * longest ones, and all of them once there are many, are read anew.
 */
const headers = new Map<string, Header>();
const MOST_HEADERS = 512;
const LONGEST_HEADER = 2_048;

/** Checks nothing, because the caller has validated the tensors. */
export function encodeFrame(meta: FrameMeta, tensors: readonly Tensor[]): Buffer {
  // Written by hand, because JSON.stringify takes twice as long for a list of new objects.
  let listed = "";
  for (const { name, datatype, shape, data } of tensors) {
    const separator = listed === "" ? "" : ",";
    const dims = shape.join(",");
    listed += `${separator}{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${dims}],"bytes":${data.length}}`;
  }
  const header = `{"meta":${JSON.stringify(meta)},"tensors":[${listed}]}`;
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
  const header = headerOf(frame.toString("utf8", 4, headerEnd));
  let offset = headerEnd;
  const tensors = header.tensors.map(({ name, datatype, shape, bytes }) => {
    const data = frame.subarray(offset, offset + bytes);
    offset += bytes;
    return { name, datatype, shape, data };
  });
  if (offset !== frame.length) throw new Error("frame length does not match its tensors");
  return { meta: header.meta, tensors };
}

function headerOf(text: string): Header {
  const known = headers.get(text);
  if (known !== undefined) return known;
  const header = JSON.parse(text) as Header;
  if (headers.size >= MOST_HEADERS) headers.clear();
  if (text.length <= LONGEST_HEADER) headers.set(text, header);
  return header;
}
