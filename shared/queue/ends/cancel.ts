/** The typed wrapper of cancel.lua: ends a request and a stream from outside of a worker. */
import type { TokenRecord } from "../../contract/generation.js";
import { parsePin, type RequestAddress } from "../address.js";
import { storeOutcome, type StoredOutcome } from "../../contract/outcome.js";
import type { ErrorCode } from "../../errors.js";
import { parseLabels } from "../pieces/job.js";
import { loadKeyOf } from "../pieces/load.js";
import { GROUP, logKey, outcomeKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { bytes, defineScript, integer, list, text, word } from "../../redis/script.js";

export interface Ending {
  /** The code that the client reads; the final record's reason follows from the code. */
  readonly code: ErrorCode;
  readonly message: string;
  /** Redis keeps the outcome for at least this long, or longer if admission said so. */
  readonly ttlMs: number;
  /** Whether the request is a stream, whose log then gets a final record. */
  readonly stream: boolean;
  /** Whether to leave a stream alone that has a record. */
  readonly unlessBegun?: boolean;
  /**
   * Whether the sequence of a step ends, too, unless a later START has begun it anew. Steps that
   * were admitted before run to their end.
   */
  readonly endsSequence?: boolean;
}

/** The final record that the script has appended to a stream. */
export interface LastRecord {
  readonly record: Buffer;
  /** The labels for whose subjects the caller publishes the record, as tokens. */
  readonly labels: readonly string[];
}

/** A request that the script has ended. */
interface Given {
  readonly said: "given";
  /** Undefined if the request is no stream. */
  readonly last: LastRecord | undefined;
  /** Of the request's model. */
  readonly version: string;
  /** From the admission to the end. */
  readonly ms: number;
}

export type Cancellation =
  | Given
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } }
  | { readonly said: "sealed" | "begun" | "unknown" };

const answers = ["given", "known", "sealed", "begun", "unknown"] as const;

const script = defineScript(
  new URL("./cancel.lua", import.meta.url),
  (reply): Cancellation => {
    const [first, second, third, pin, ms] = list(reply);
    const said = word(first, answers);
    if (said === "known") return { said, outcome: { kind: text(second), body: bytes(third) } };
    if (said !== "given") return { said };
    const record = bytes(second);
    const last = record.length === 0 ? undefined : { record, labels: parseLabels(text(third)) };
    return { said, last, version: parsePin(text(pin)).version, ms: integer(ms) };
  },
  {
    keys: ["record", "log", "load"],
    args: ["kind", "body", "ttl", "members", "unlessBegun", "ends", "group"],
    durable: true,
  },
);

/** Safe to repeat: a repeated call finds the end of the earlier call as `known`. */
export function cancelRequest(redis: RedisClient, address: RequestAddress, ending: Ending) {
  const { code, message, ttlMs, stream, unlessBegun = false, endsSequence = false } = ending;
  const { kind, body }: StoredOutcome = storeOutcome({ kind: "error", code, message });
  const keys = { record: outcomeKey(address), log: logKey(address), load: loadKeyOf(redis, address.bucket) };
  return script(redis, keys, {
    kind,
    body,
    ttl: ttlMs,
    members: stream ? finalMembers(code, message) : "",
    unlessBegun: unlessBegun ? 1 : 0,
    ends: endsSequence ? 1 : 0,
    group: GROUP,
  });
}

/**
 * The final record as JSON members, without braces: the script adds the index, the empty choices
 * and `final`.
 */
function finalMembers(code: ErrorCode, message: string): string {
  const reason = code === "cancelled" || code === "expired" ? code : "error";
  return JSON.stringify({ reason, error: { code, message } } satisfies Partial<TokenRecord>).slice(1, -1);
}
