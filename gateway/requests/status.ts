/** A request as it stands, put together from its outcome and, for a generator's, its log. */
import { readOutcome, type Outcome } from "#shared/contract/outcome.js";
import { encodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { decodeFrame } from "#shared/frame.js";
import { outcomeKey, tokenSubject } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { onlyTenant } from "../tenant.js";
import { claimedIndex } from "../stream/records.js";
import { renderInfer } from "../v2/render-infer.js";
import { foldLog, type FoldedLog } from "./fold-log.js";

type State = "queued" | "running" | "done" | "failed" | "cancelled" | "expired";

export interface Description {
  readonly state: State;
  /** What the client is shown. */
  readonly json: string;
}

/** The fields of an outcome hash that say how far the request is; times are Redis's, in ms. */
interface Facts {
  readonly known: boolean;
  /** Undefined while it has none. */
  readonly outcome: Outcome | undefined;
  readonly admittedAt: number | undefined;
  readonly beganAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Its log has the final record; the outcome may be about to come. */
  readonly sealed: boolean;
  /** It ends when nobody reads it. */
  readonly wanted: boolean;
}

export async function readFacts(redis: RedisClient, key: string): Promise<Facts> {
  const fields = ["digest", "kind", "body", "at", "began", "ended", "sealed", "wanted"] as const;
  const [digest, kind, body, at, began, ended, sealed, wanted] = await redis.hmgetBuffer(key, ...fields);
  const number = (field: Buffer | null | undefined) => (field ? Number(field.toString()) : undefined);
  return {
    known: Boolean(digest),
    outcome: kind && body ? readOutcome(kind.toString(), body) : undefined,
    admittedAt: number(at),
    beganAt: number(began),
    endedAt: number(ended),
    sealed: Boolean(sealed),
    wanted: Boolean(wanted),
  };
}

/**
 * @param stream whether the request is a generator's: its records are published while it runs.
 * @throws InferenceError `unknown_request`, or the client's error while Redis cannot be asked
 */
export async function describe(redis: RedisClient, address: RequestAddress, stream: boolean): Promise<Description> {
  const { lane, request } = address;
  const facts = await readFacts(redis, outcomeKey(lane, request));
  if (!facts.known) throw new InferenceError("unknown_request", "no such request");
  const over = facts.outcome !== undefined || facts.sealed;
  const log = over ? await foldLog(redis, address) : undefined;
  const state = stateOf(facts, log);
  const members = [
    member("id", encodeRequestId(address)),
    member("model_name", lane.model),
    member("model_version", lane.version),
    ...(stream ? [member("subject", tokenSubject(onlyTenant, lane, request))] : []),
    member("state", state),
    member("admitted_at", isoTime(facts.admittedAt)),
    member("began_at", isoTime(facts.beganAt)),
    member("ended_at", isoTime(facts.endedAt)),
  ];
  const outcome = over ? renderOutcome(address, facts.outcome, log) : undefined;
  if (outcome !== undefined) members.push(`"outcome":${outcome}`);
  return { state, json: `{${members.join(",")}}` };
}

function stateOf({ outcome, sealed, beganAt }: Facts, log: FoldedLog | undefined): State {
  if (outcome?.kind === "result") return "done";
  // The final record is in the log before the outcome is given, and says the same.
  const code = outcome?.code ?? log?.error?.code;
  if (code !== undefined) return code === "cancelled" || code === "expired" ? code : "failed";
  if (sealed) return "done";
  return beganAt === undefined ? "queued" : "running";
}

/** What a synchronous request would have been answered with, or what was generated until it ended. */
function renderOutcome(address: RequestAddress, outcome: Outcome | undefined, log: FoldedLog | undefined) {
  const error = outcome?.kind === "error" ? outcome : log?.error;
  const choices = log && { choices: log.choices, ...(log.usage && { usage: log.usage }) };
  if (error !== undefined) return JSON.stringify({ error: error.message, code: error.code, ...choices });
  if (choices !== undefined) return JSON.stringify(choices);
  return outcome?.kind === "result" ? renderTensors(address, outcome.body) : undefined;
}

function renderTensors({ lane }: RequestAddress, body: Buffer): string | undefined {
  // The outcome of a generator whose log is gone: its final record, without what was said before.
  if (claimedIndex(body.toString("latin1", 0, 32)) !== undefined) return undefined;
  const { tensors } = decodeFrame(body);
  try {
    return renderInfer("", { name: lane.model, version: lane.version }, [], tensors).body.join("");
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return JSON.stringify({ error: error.message, code: error.code });
  }
}

function member(name: string, value: string | null): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
