/** The client's own name for a request, under which a retry finds the first try's outcome. */
import type { IncomingHttpHeaders } from "node:http";
import { InferenceError } from "#shared/errors.js";

export function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const header = headers["idempotency-key"];
  if (header === undefined) return undefined;
  const key = String(header);
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new InferenceError("invalid_argument", "Idempotency-Key must be 1 to 255 printable ASCII characters");
  }
  return key;
}
