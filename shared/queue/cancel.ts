/** The typed wrapper of cancel.lua: ends a request from outside, its stream too. */
import type { TokenRecord } from "#shared/contract/generation.js";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { storeOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import type { ErrorCode } from "#shared/errors.js";
import { logKey, outcomeKey } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { bytes, defineScript, list, text, word } from "#shared/redis/script.js";

export interface Ending {
  /** What the client is told; the final record's reason follows from the code. */
  readonly code: ErrorCode;
  readonly message: string;
  /** How long the outcome is kept at least: as long as it would have been without this, if that is longer. */
  readonly ttlMs: number;
  /** Whether the request is a generator's: its log gets a final record. */
  readonly stream: boolean;
  /** Whether a stream that has a token is left alone. */
  readonly unlessBegun?: boolean;
}

export type Cancellation =
  /** `record` is the final one that was appended; undefined for what is no stream. */
  | { readonly said: "given"; readonly record: Buffer | undefined }
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } }
  | { readonly said: "sealed" | "begun" | "unknown" };

const script = defineScript<Cancellation>(new URL("./cancel.lua", import.meta.url), (reply) => {
  const [first, second, body] = list(reply);
  const said = word(first, ["given", "known", "sealed", "begun", "unknown"]);
  if (said === "known") return { said, outcome: { kind: text(second), body: bytes(body) } };
  if (said !== "given") return { said };
  const record = bytes(second);
  return { said, record: record.length === 0 ? undefined : record };
});

/** Safe to repeat: what an earlier call did reads as `known`. */
export function cancelRequest(redis: RedisClient, { lane, request }: RequestAddress, ending: Ending) {
  const { code, message, ttlMs, stream, unlessBegun = false } = ending;
  const { kind, body }: StoredOutcome = storeOutcome({ kind: "error", code, message });
  return script(
    redis,
    [outcomeKey(lane, request), logKey(lane, request)],
    [kind, body, ttlMs, stream ? finalMembers(code, message) : "", unlessBegun ? 1 : 0],
  );
}

function finalMembers(code: ErrorCode, message: string): string {
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return JSON.stringify({ reason, error: { code, message } } satisfies Partial<TokenRecord>).slice(1, -1);
}
