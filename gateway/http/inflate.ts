/**
 * Undoes the Content-Encoding of a request's body. Stops at the limits, so that a small body cannot
 * become a large one.
 */
import { createUnzip } from "node:zlib";
import { fixedError, InferenceError } from "#shared/errors.js";
import { PieceBuffer, type BodyRoom } from "./body.js";
import { UnsupportedEncoding } from "../formats/errors.js";

/**
 * Most times that JSON may be longer than its compressed form. Random numbers as JSON shrink to a
 * third, and text to a tenth.
 */
const maxRatio = 200;
/**
 * The ratio counts only beyond this length, because short JSON often repeats one value, for example
 * a mask of ones.
 */
const freeBytes = 1024 * 1024;
const chunkBytes = 64 * 1024;

export interface InflatedLimits {
  /** Longest body, before and after it is inflated. */
  readonly maxBytes: number;
  /**
   * How many bytes of the result are JSON; all, if absent. The bytes of tensors may expand by any
   * ratio, as zeros do a thousandfold, because the gateway builds nothing larger from them.
   */
  readonly jsonBytes?: number | undefined;
}

/**
 * @param encoding the header Content-Encoding
 * @param room grows with the result
 * @throws InferenceError if the encoding is unknown, the result exceeds a limit or the bytes are
 * corrupt
 */
export async function inflate(
  body: Buffer,
  encoding: string | undefined,
  limits: InflatedLimits,
  room: BodyRoom,
): Promise<Buffer> {
  switch (encoding?.trim().toLowerCase()) {
    case undefined:
    case "":
    case "identity":
      return body;
    case "gzip":
    case "deflate":
      return unpack(body, limits, room);
    default:
      throw new UnsupportedEncoding();
  }
}

async function unpack(body: Buffer, { maxBytes, jsonBytes }: InflatedLimits, room: BodyRoom): Promise<Buffer> {
  const maxJsonBytes = Math.max(freeBytes, maxRatio * body.length);
  if (jsonBytes !== undefined && jsonBytes > maxJsonBytes) throw expanded();
  // The engine recognizes gzip and zlib by itself, as Triton's inflater does.
  const engine = createUnzip({ chunkSize: chunkBytes });
  const pieces = new PieceBuffer(maxBytes);
  engine.end(body);
  try {
    for await (const piece of engine as AsyncIterable<Buffer>) {
      const bytes = pieces.length + piece.length;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      if (jsonBytes === undefined && bytes > maxJsonBytes) throw expanded();
      room.grow(body.length + bytes);
      pieces.add(piece);
    }
  } catch (error) {
    throw error instanceof InferenceError ? error : corrupt(error);
  }
  if (engine.bytesWritten !== body.length) throw corrupt();
  return pieces.bytes();
}

function tooLarge(maxBytes: number): InferenceError {
  return new InferenceError(
    "payload_too_large",
    `request body is larger than the limit of ${maxBytes} bytes after decompression`,
  );
}

function expanded(): InferenceError {
  return new InferenceError(
    "payload_too_large",
    `request JSON is larger than ${freeBytes} bytes and than ${maxRatio} times its compressed length`,
  );
}

function corrupt(cause?: unknown): InferenceError {
  return fixedError("invalid_argument", "decompression", { cause });
}
