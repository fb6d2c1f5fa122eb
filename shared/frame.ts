/**
 * The one format of tensors between processes: requests, outcomes and checkpoints are all frames,
 * in Redis and on NATS. A frame is a KServe v2 body with the binary tensor extension, after the
 * length of its header:
 *
 *     u32 LE header length | header (JSON, UTF-8) | raw little-endian tensors, in header order
 *
 * The header's last member may be `t`, a list that differs in every frame. Versions that do not
 * know `t` read past it.
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
  /** The text of the member `t`; absent if the header has none. */
  readonly note?: string;
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

/** Begins the member `t`. No text in JSON has these characters, because it escapes its quotes. */
const NOTE = ',"t":[';

/**
 * Checks nothing, because the caller has validated the tensors.
 * @param note a list in JSON that ends with a text, for the member `t`
 */
export function encodeFrame(meta: FrameMeta, tensors: readonly Tensor[], note?: string): Buffer {
  // Written by hand, because JSON.stringify takes twice as long for a list of new objects.
  let listed = "";
  for (const { name, datatype, shape, data } of tensors) {
    const separator = listed === "" ? "" : ",";
    const dims = shape.join(",");
    listed += `${separator}{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${dims}],"bytes":${data.length}}`;
  }
  const last = note === undefined ? "" : `,"t":${note}`;
  const header = `{"meta":${JSON.stringify(meta)},"tensors":[${listed}]${last}}`;
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
  const text = frame.toString("utf8", 4, headerEnd);
  // Only a header with a note ends like this: without one, its last members are lists of objects.
  const noteAt = text.endsWith('"]}') ? text.lastIndexOf(NOTE) : -1;
  const header = headerOf(noteAt < 0 ? text : `${text.slice(0, noteAt)}}`);
  let offset = headerEnd;
  const tensors = header.tensors.map(({ name, datatype, shape, bytes }) => {
    const data = frame.subarray(offset, offset + bytes);
    offset += bytes;
    return { name, datatype, shape, data };
  });
  if (offset !== frame.length) throw new Error("frame length does not match its tensors");
  const frameOf = { meta: header.meta, tensors };
  return noteAt < 0 ? frameOf : { ...frameOf, note: text.slice(noteAt + NOTE.length - 1, -1) };
}

function headerOf(text: string): Header {
  const known = headers.get(text);
  if (known !== undefined) return known;
  const header = JSON.parse(text) as Header;
  if (headers.size >= MOST_HEADERS) headers.clear();
  if (text.length <= LONGEST_HEADER) headers.set(text, header);
  return header;
}
