/**
 * Undoes a request's Content-Encoding. It stops at the limits, so that a small body cannot become a
 * large one.
 */
import { createUnzip } from "node:zlib";
import { InferenceError } from "#shared/errors.js";
import type { BodyRoom } from "./body-memory.js";
import { Gathered } from "./gathered.js";
import { UnsupportedEncoding } from "./reply.js";

/** JSON of random numbers shrinks to a third, and of text to a tenth. */
const maxRatio = 200;
/** Only beyond this length: short JSON of one value repeated is usual, such as a mask of ones. */
const freeBytes = 1024 * 1024;
const chunkBytes = 64 * 1024;

export interface InflatedLimits {
  readonly maxBytes: number;
  /**
   * How much of the result is JSON: all of it, if absent. What is tensors' bytes may expand by any
   * ratio, as zeros do a thousandfold, since nothing is made of it that is larger.
   */
  readonly jsonBytes?: number | undefined;
}

/** @throws InferenceError */
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
  // Tells gzip from zlib by itself, as Triton's inflater does.
  const engine = createUnzip({ chunkSize: chunkBytes });
  const gathered = new Gathered(maxBytes);
  engine.end(body);
  try {
    for await (const piece of engine as AsyncIterable<Buffer>) {
      const bytes = gathered.length + piece.length;
      if (bytes > maxBytes) throw tooLarge(maxBytes);
      if (jsonBytes === undefined && bytes > maxJsonBytes) throw expanded();
      room.grow(body.length + bytes);
      gathered.add(piece);
    }
  } catch (error) {
    throw error instanceof InferenceError ? error : corrupt(error);
  }
  if (engine.bytesWritten !== body.length) throw corrupt();
  return gathered.bytes();
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
  return new InferenceError("invalid_argument", "failed to decompress the request body", { cause });
}
