/** Undoes a request's Content-Encoding. It stops at the limit, so that a small body cannot become a large one. */
import { promisify } from "node:util";
import { unzip, type InputType, type Unzip, type ZlibOptions } from "node:zlib";
import { InferenceError } from "#shared/errors.js";
import { UnsupportedEncoding } from "./reply.js";

interface Inflated {
  readonly buffer: Buffer;
  readonly engine: Unzip;
}

/** Tells gzip from zlib by itself, as Triton's inflater does; `info` makes node's zlib hand out its engine as well. */
const unzipWithInfo = promisify(unzip) as unknown as (
  input: InputType,
  options: ZlibOptions & { info: true },
) => Promise<Inflated>;

/** @throws InferenceError */
export async function inflate(body: Buffer, encoding: string | undefined, maxBytes: number): Promise<Buffer> {
  switch (encoding?.trim().toLowerCase()) {
    case undefined:
    case "":
    case "identity":
      return body;
    case "gzip":
    case "deflate":
      return unpack(body, maxBytes);
    default:
      throw new UnsupportedEncoding();
  }
}

async function unpack(body: Buffer, maxBytes: number): Promise<Buffer> {
  const { buffer, engine } = await unzipWithInfo(body, { maxOutputLength: maxBytes, info: true }).catch(
    (cause: unknown) => {
      throw (cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE"
        ? new InferenceError(
            "payload_too_large",
            `request body is larger than the limit of ${maxBytes} bytes after decompression`,
          )
        : corrupt(cause);
    },
  );
  if (engine.bytesWritten !== body.length) throw corrupt();
  return buffer;
}

function corrupt(cause?: unknown): InferenceError {
  return new InferenceError("invalid_argument", "failed to decompress the request body", { cause });
}
