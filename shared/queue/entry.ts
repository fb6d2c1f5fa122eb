/**
 * One request as an entry of a ready stream. Scripts write entries: admit.lua, and commit-steps.lua
 * and mend-sequence.lua for steps that waited. Only this file reads entries.
 *
 * An entry has two fields: `b`, the request's frame, and `m`, the request's facts joined by `|`:
 *
 *     tenant:request | sequence | step | flags | deadline | gateway | outcome TTL | number | from
 *
 * `Delivery` describes the facts; the flags are START 1 + END 2 + brief 4. The number has a leading
 * 0 if a webhook wants to know that the request has begun. Earlier versions of Baton read the same
 * number.
 */
import { z } from "zod";
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

const flags = z
  .string()
  .regex(/^[0-7]$/)
  .transform(Number);
const whole = z.string().regex(/^\d+$/).transform(Number);
const numbered = z
  .string()
  .regex(/^\d+$/)
  .transform((text) => ({ number: Number(text), tellsBegin: text.length > 1 && text.startsWith("0") }));
/** From `requestName`. */
const name = z.string().regex(/^[A-Za-z0-9_-]+:[A-Za-z0-9_-]+$/);
const facts = z.tuple([name, z.string(), whole, flags, whole, z.string().min(1), whole, numbered, z.string()]);

/** @returns undefined for an entry that is not Baton's, with missing or unreadable fields. */
export function decodeEntry(lane: Lane, id: Buffer, fields: readonly Buffer[] | null): Delivery | undefined {
  if (fields?.length !== 4 || fields[0]?.toString() !== "m" || fields[2]?.toString() !== "b") return undefined;
  const parsed = facts.safeParse(fields[1]?.toString().split("|"));
  const frame = fields[3];
  if (!parsed.success || frame === undefined) return undefined;
  const [request, sequence, step, flag, deadlineAt, gateway, outcomeTtlMs, number, from] = parsed.data;
  const entry = id.toString();
  return {
    lane,
    entry,
    key: deliveryKey(lane, entry),
    bucket: lane.bucket,
    model: lane.model,
    ...parseRequestName(request),
    sequence: sequence === "" ? undefined : sequence,
    step,
    ...number,
    start: (flag & 1) !== 0,
    end: (flag & 2) !== 0,
    brief: (flag & 4) !== 0,
    deadlineAt,
    gateway,
    outcomeTtlMs,
    from,
    frame,
  };
}

/** The `key` of a delivery. */
export function deliveryKey({ bucket }: Pick<Lane, "bucket">, entry: string): string {
  return `${bucket}/${entry}`;
}
