/**
 * What a batch is: as it lies in Redis, as its tenant reads it, and how it goes from one status to
 * the next. All of it is in one text, which is changed as a whole or not at all.
 */
import { z } from "zod";
import type { Checkpoint } from "./progress.js";

export const batchStatuses = [
  "validating",
  "in_progress",
  "finalizing",
  "completed",
  "failed",
  "expired",
  "cancelling",
  "cancelled",
] as const;

export type BatchStatus = (typeof batchStatuses)[number];

const checkpoint = z.object({ offset: z.number(), line: z.number(), beyond: z.array(z.number()) });

/** Pieces of an output, by which run of the batch has written them, and how many. */
const pieces = z.array(z.tuple([z.number(), z.number()]));

const fault = z.object({ code: z.string(), message: z.string(), line: z.number().nullable() });

const batch = z.object({
  id: z.string(),
  tenant: z.string(),
  endpoint: z.string(),
  inputFile: z.string(),
  window: z.string(),
  metadata: z.record(z.string(), z.string()).nullable(),
  /** Of what the client asked for; a retry under its key must have the same. */
  digest: z.string(),
  status: z.enum(batchStatuses),
  /** Since when it has each status that it has had, in ms since 1970. */
  since: z.partialRecord(z.enum(batchStatuses), z.number()),
  expiresAt: z.number(),
  /** Requests in the file; 0 until it is validated. */
  total: z.number(),
  completed: z.number(),
  failed: z.number(),
  /** Up to where its lines are done, and what they gave is kept. */
  checkpoint,
  /**
   * How often a process has begun to run it. What a run writes after the next one began never
   * counts.
   */
  run: z.number(),
  output: pieces,
  errors: pieces,
  /** Of all pieces together. */
  bytes: z.number(),
  /** The runs up to this one have left nothing in the store that does not count. */
  swept: z.number().optional(),
  /** The files of what came of it. */
  outputFile: z.string().optional(),
  errorFile: z.string().optional(),
  /** Why it failed as a whole. */
  faults: z.array(fault),
});

export type Batch = Readonly<z.infer<typeof batch>>;
export type Pieces = Batch["output"];

const USED_AFTER_MS = 86_400_000;

/** How it ends when all that runs of it has come to its end. */
export type Ending = "completed" | "expired" | "cancelled";

export function batchText(value: Batch): string {
  return JSON.stringify(value);
}

/** Thrown for what this version cannot read. A newer one beside it may have made it. */
export class UnreadableBatch extends Error {
  override readonly name = "UnreadableBatch";
}

/**
 * The inverse of `batchText`.
 * @throws UnreadableBatch
 */
export function parseBatch(text: string): Batch {
  try {
    return batch.parse(JSON.parse(text));
  } catch (cause) {
    throw new UnreadableBatch("a batch cannot be read: another version of Baton may have made it", { cause });
  }
}

export type NewBatch = Pick<Batch, "id" | "tenant" | "endpoint" | "inputFile" | "window" | "metadata" | "digest">;

export function newBatch(given: NewBatch, now: number, windowMs: number): Batch {
  return {
    ...given,
    status: "validating",
    since: { validating: now },
    expiresAt: now + windowMs,
    total: 0,
    completed: 0,
    failed: 0,
    checkpoint: { offset: 0, line: 0, beyond: [] },
    run: 0,
    output: [],
    errors: [],
    bytes: 0,
    faults: [],
  };
}

const ends = ["completed", "failed", "expired", "cancelled"] as const;

/** @returns undefined for a batch that has not ended */
export function endedAs({ status }: Batch): (typeof ends)[number] | undefined {
  return ends.find((end) => end === status);
}

export function hasEnded(one: Batch): boolean {
  return endedAs(one) !== undefined;
}

/** The next status, with its time. */
export function withStatus(one: Batch, status: BatchStatus, now: number): Batch {
  return { ...one, status, since: { ...one.since, [status]: now } };
}

/** @returns as it is after somebody cancels it; undefined where it is too late for that */
export function cancelled(one: Batch, now: number): Batch | undefined {
  if (one.status === "cancelling" || one.status === "cancelled") return one;
  if (one.status === "validating" || one.status === "in_progress") return withStatus(one, "cancelling", now);
  return undefined;
}

/** The input is used until then at most, in ms from now, even if nobody is left to release it. */
export function usedForMs({ expiresAt }: Batch, now: number): number {
  return Math.max(expiresAt - now, 0) + USED_AFTER_MS;
}

/** How it will end, by what is known now. */
export function endingOf({ status, expiresAt }: Batch, now: number): Ending {
  if (status === "cancelling") return "cancelled";
  return now >= expiresAt ? "expired" : "completed";
}

/** What one step of a run adds. */
export interface Advance {
  readonly checkpoint: Checkpoint;
  readonly completed: number;
  readonly failed: number;
  /** Whether this run has written one more piece of each. */
  readonly output: boolean;
  readonly errors: boolean;
  /** Of these pieces. */
  readonly bytes: number;
}

export function advanced(one: Batch, { checkpoint, completed, failed, output, errors, bytes }: Advance): Batch {
  return {
    ...one,
    checkpoint: { ...checkpoint, beyond: [...checkpoint.beyond] },
    completed: one.completed + completed,
    failed: one.failed + failed,
    bytes: one.bytes + bytes,
    output: output ? withPiece(one.output, one.run) : one.output,
    errors: errors ? withPiece(one.errors, one.run) : one.errors,
  };
}

function withPiece(list: Pieces, run: number): Pieces {
  const last = list.at(-1);
  if (last?.[0] === run) return [...list.slice(0, -1), [run, last[1] + 1]];
  return [...list, [run, 1]];
}

/** How many pieces this run has written. */
export function piecesOf(list: Pieces, run: number): number {
  return list.find(([of]) => of === run)?.[1] ?? 0;
}

/** OpenAI's view, whose times are seconds. */
export function viewOf(one: Batch) {
  const at = (status: BatchStatus) => seconds(one.since[status]);
  const { faults, total, completed, failed } = one;
  const data = faults.map(({ code, message, line }) => ({ code, message, line, param: null }));
  return {
    id: one.id,
    object: "batch",
    endpoint: one.endpoint,
    errors: data.length === 0 ? null : { object: "list", data },
    input_file_id: one.inputFile,
    completion_window: one.window,
    status: one.status,
    output_file_id: one.outputFile ?? null,
    error_file_id: one.errorFile ?? null,
    created_at: at("validating"),
    in_progress_at: at("in_progress"),
    expires_at: seconds(one.expiresAt),
    finalizing_at: at("finalizing"),
    completed_at: at("completed"),
    failed_at: at("failed"),
    expired_at: at("expired"),
    cancelling_at: at("cancelling"),
    cancelled_at: at("cancelled"),
    request_counts: { total, completed, failed },
    metadata: one.metadata,
  };
}

function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1_000);
}
