/**
 * The status of a request: its state, its times and its outcome. A generator's request also has a
 * log, from which the text is put together for clients that come back for the answer alone.
 */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { readKept, stepOf, type Outcome } from "#shared/contract/outcome.js";
import { fixedError, InferenceError, usualReason } from "#shared/errors.js";
import { decodeFrame } from "#shared/frame.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { tokenSubject } from "#shared/queue/keys.js";
import { encodeRequestId, parsePin, type RequestAddress } from "#shared/queue/address.js";
import { readRecord, type RequestRecord } from "#shared/queue/outcome.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { renderInfer } from "../kserve/http/infer.js";
import { claimedIndex } from "../stream/records.js";

type State = "queued" | "running" | "completed" | "failed" | "cancelled" | "expired";

export interface RequestStatus {
  readonly state: State;
  /** The body of the reply. */
  readonly json: string;
}

/**
 * @param stream whether the request is a generator's; the status of one names the NATS subject on
 *   which its records are published
 * @throws InferenceError `unknown_request`
 * @throws ioredis's error where Redis cannot be reached
 */
export async function readStatus(redis: RedisClient, address: RequestAddress, stream: boolean): Promise<RequestStatus> {
  const record = await readRecord(redis, address);
  if (record === undefined) throw fixedError("unknown_request", "usual");
  const ended = record.kind === undefined ? undefined : readKept(record.kind, record.body);
  const over = ended !== undefined || record.sealed;
  const log = over ? await collectLog(redis, address) : undefined;
  const { version } = parsePin(record.pin);
  const state = stateOf(record, ended, log);
  const members = [
    member("id", encodeRequestId(address)),
    member("model_name", address.model),
    member("model_version", version),
    ...(stream ? [member("subject", tokenSubject(address))] : []),
    member("state", state),
    member("admitted_at", isoTime(record.at)),
    member("began_at", isoTime(record.began)),
    member("ended_at", isoTime(record.ended)),
  ];
  const outcome = over ? renderOutcome({ name: address.model, version }, ended, log) : undefined;
  if (outcome !== undefined) members.push(`"outcome":${outcome}`);
  return { state, json: `{${members.join(",")}}` };
}

function stateOf({ sealed, began }: RequestRecord, outcome: Outcome | undefined, log: CollectedLog | undefined): State {
  if (outcome?.kind === "result" || outcome?.code === "result_expired") return "completed";
  // The final record is written before the outcome and says the same.
  const code = outcome?.code ?? log?.error?.code;
  if (code !== undefined) return code === "cancelled" || code === "expired" ? code : "failed";
  if (sealed) return "completed";
  return began === undefined ? "queued" : "running";
}

/**
 * @returns the JSON that a synchronous request would have been answered with, or the text that was
 *   generated until the request ended; undefined where nothing is left of it
 */
function renderOutcome(
  model: Pick<ServedModel, "name" | "version">,
  outcome: Outcome | undefined,
  log: CollectedLog | undefined,
) {
  const error = outcome?.kind === "error" ? outcome : log?.error;
  const choices = log && { choices: log.choices, ...(log.usage && { usage: log.usage }) };
  if (error !== undefined) {
    const { code, message } = error;
    return JSON.stringify({ error: message, code, reason: usualReason(code), ...choices });
  }
  if (choices !== undefined) return JSON.stringify(choices);
  return outcome?.kind === "result" ? renderTensors(model, outcome.body) : undefined;
}

function renderTensors(model: Pick<ServedModel, "name" | "version">, body: Buffer): string | undefined {
  // A generator's outcome is its final record alone; the text before it is gone with the log.
  if (claimedIndex(body.toString("latin1", 0, 32)) !== undefined) return undefined;
  const { meta, tensors } = decodeFrame(body);
  try {
    return renderInfer("", model, [], tensors, stepOf(meta)).body.join("");
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return JSON.stringify({ error: error.message, code: error.code, reason: error.reason });
  }
}

function member(name: string, value: string | null): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** What the records of a log say together. */
export interface CollectedLog {
  readonly choices: readonly CollectedChoice[];
  readonly usage: TokenRecord["usage"];
  /** The error in the final record, if it has one. */
  readonly error: TokenRecord["error"];
}

interface CollectedChoice {
  readonly index: number;
  text: string;
  /** null for a choice that did not come to its end. */
  finish_reason: "stop" | "length" | null;
}

/**
 * Reads a log page by page, so that other requests are served in between, and puts it together.
 * @returns undefined for a request without a log, such as a tensor model's
 */
export async function collectLog(redis: RedisClient, address: RequestAddress): Promise<CollectedLog | undefined> {
  const choices: CollectedChoice[] = [];
  let last: TokenRecord | undefined;
  let from = 0;
  for (let more = true; more;) {
    const [page] = await readLogs(redis, [{ ...address, from }]);
    if (page?.said !== "records") break;
    for (const json of page.records) {
      last = tokenRecord.parse(JSON.parse(json));
      for (const delta of last.choices) {
        const choice = (choices[delta.index] ??= { index: delta.index, text: "", finish_reason: null });
        choice.text += delta.text;
        choice.finish_reason = delta.finish_reason ?? choice.finish_reason;
      }
    }
    from += page.records.length;
    more = page.more;
  }
  if (last === undefined) return undefined;
  return { choices: choices.filter((choice) => choice !== undefined), usage: last.usage, error: last.error };
}
