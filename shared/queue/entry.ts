/**
 * One request as an entry of a ready stream. Scripts write entries: admit.lua, and commit-steps.lua
 * and mend-sequence.lua for steps that waited. Only this file reads entries.
 *
 * An entry has two fields: `b`, the request's frame, and `m`, the request's facts
 * (records/requests.ts).
 */
import { entry as entryFacts } from "../records/requests.js";
import { parseRequestName, type Lane, type RequestAddress } from "./address.js";

export interface Delivery extends RequestAddress {
  /** The lane of the ready stream from which the worker read the entry. */
  readonly lane: Lane;
  /** The stream's id of the entry, never used again in the lane. */
  readonly entry: string;
  /**
   * Bucket and entry. The key names the delivery among all of a worker's deliveries of one model,
   * because entries of two lanes may have the same id.
   */
  readonly key: string;
  /** Name of the sequence (`tenant:id`), or undefined for a stateless request. */
  readonly sequence: string | undefined;
  /** Number of the step in the sequence's record, from 1; 0 for a stateless request. */
  readonly step: number;
  /** Number of the step as clients count: a START is 1, even the START of a live sequence. */
  readonly number: number;
  /** Whether the request runs a job whose begin a webhook wants to know. */
  readonly tellsBegin: boolean;
  readonly start: boolean;
  readonly end: boolean;
  /** Whether the request is brief (load.lua). */
  readonly brief: boolean;
  /**
   * Redis time in ms after which no model may begin this request. A stream that has a token by then
   * continues.
   */
  readonly deadlineAt: number;
  /** The gateway process that waits for the outcome. */
  readonly gateway: string;
  /** How long the outcome is kept, in ms. */
  readonly outcomeTtlMs: number;
  /**
   * The version of the checkpoint that this step continues; empty if there is none; `!` if the
   * sequence has failed.
   */
  readonly from: string;
  readonly frame: Buffer;
}

/** The value of `from` if the sequence has failed: the worker refuses the step. */
export const FAILED = "!";

/** The names of an entry's fields. */
const FACTS = Buffer.from("m");
const FRAME = Buffer.from("b");
const NONE = Buffer.alloc(0);

/** From `requestName`. */
const NAME = /^[A-Za-z0-9_-]+:[A-Za-z0-9_-]+$/;

/** @returns undefined for an entry that is not Baton's, with missing or unreadable fields. */
export function decodeEntry(lane: Lane, id: Buffer, fields: readonly Buffer[] | null): Delivery | undefined {
  if (fields?.length !== 4 || !FACTS.equals(fields[0] ?? NONE) || !FRAME.equals(fields[2] ?? NONE)) return undefined;
  const facts = entryFacts.read(fields[1]?.toString() ?? "");
  const frame = fields[3];
  if (facts === undefined || !NAME.test(facts.request) || facts.gateway === "" || frame === undefined) return undefined;
  const { request, sequence, number } = facts;
  const [flags, entry] = [Number(facts.flags), id.toString()];
  return {
    lane,
    entry,
    key: deliveryKey(lane, entry),
    bucket: lane.bucket,
    model: lane.model,
    ...parseRequestName(request),
    sequence: sequence === "" ? undefined : sequence,
    step: facts.step,
    number: Number(number),
    tellsBegin: number.length > 1 && number.startsWith("0"),
    start: (flags & 1) !== 0,
    end: (flags & 2) !== 0,
    brief: (flags & 4) !== 0,
    deadlineAt: facts.deadline,
    gateway: facts.gateway,
    outcomeTtlMs: facts.ttl,
    from: facts.from,
    frame,
  };
}

/** The `key` of a delivery. */
export function deliveryKey({ bucket }: Pick<Lane, "bucket">, entry: string): string {
  return `${bucket}/${entry}`;
}
