/**
 * One step as it stands in a ready stream. The gateway's admission script and the worker's commit script write entries; this is the only
 * place that reads one. Two fields: `m`, the facts joined by `|`, and `b`, the request's frame.
 */
import { z } from "zod";

export interface Delivery {
  /** Stream id; unique for ever in its lane, so it also names the checkpoint that this step's commit writes. */
  readonly entry: string;
  readonly request: string;
  /** Name of the sequence, or undefined for a stateless request. */
  readonly sequence: string | undefined;
  /** Number of the step in its sequence, from 1; 0 for a stateless request. */
  readonly step: number;
  readonly start: boolean;
  readonly end: boolean;
  /**
   * Redis time in ms after which no model may begin this. A stream that has a token by then goes
   * on.
   */
  readonly deadlineAt: number;
  /** The gateway process that waits for the outcome. */
  readonly gateway: string;
  /** How long the outcome is kept, in ms. */
  readonly outcomeTtlMs: number;
  /** Entry id of the step whose checkpoint this one continues; empty when there is none; `!` when the sequence has failed. */
  readonly from: string;
  readonly frame: Buffer;
}

export const FAILED = "!";

const flags = z.enum(["0", "1", "2", "3"]);
const whole = z.string().regex(/^\d+$/).transform(Number);
const facts = z.tuple([z.string().min(1), z.string(), whole, flags, whole, z.string().min(1), whole, z.string()]);

/** @returns undefined when the entry is not one of ours: its fields are gone or do not parse. */
export function decodeEntry(id: Buffer, fields: readonly Buffer[] | null): Delivery | undefined {
  if (fields?.length !== 4 || fields[0]?.toString() !== "m" || fields[2]?.toString() !== "b") return undefined;
  const parsed = facts.safeParse(fields[1]?.toString().split("|"));
  const frame = fields[3];
  if (!parsed.success || frame === undefined) return undefined;
  const [request, sequence, step, flag, deadlineAt, gateway, outcomeTtlMs, from] = parsed.data;
  return {
    entry: id.toString(),
    request,
    sequence: sequence === "" ? undefined : sequence,
    step,
    start: flag === "1" || flag === "3",
    end: flag === "2" || flag === "3",
    deadlineAt,
    gateway,
    outcomeTtlMs,
    from,
    frame,
  };
}
