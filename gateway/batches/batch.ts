/**
 * A batch: its text in Redis, its form for clients, and its changes of status. All facts of a batch
 * lie in a single text, which changes as a whole or not at all.
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

/** Pieces of an output: a run of the batch, and how many pieces the run has written. */
const pieces = z.array(z.tuple([z.number(), z.number()]));

const fault = z.object({ code: z.string(), message: z.string(), line: z.number().nullable() });

const batch = z.object({
  id: z.string(),
  tenant: z.string(),
  endpoint: z.string(),
  /** Globs of the models that the batch may use, from its client's key; absent: all models. */
  models: z.array(z.string()).readonly().optional(),
  inputFile: z.string(),
  window: z.string(),
  metadata: z.record(z.string(), z.string()).nullable(),
  /** Of the client's order; a retry under the same Idempotency-Key must have the same digest. */
  digest: z.string(),
  status: z.enum(batchStatuses),
  /** When each status began, in ms since 1970; statuses that the batch never had are absent. */
  since: z.partialRecord(z.enum(batchStatuses), z.number()),
  expiresAt: z.number(),
  /** Requests in the file; 0 before the end of validation. */
  total: z.number(),
  completed: z.number(),
  failed: z.number(),
  /** Which lines are done, with their results in the store. */
  checkpoint,
  /**
   * How often a process has begun to run the batch. Pieces that a run writes after the next run has
   * begun never count.
   */
  run: z.number(),
  output: pieces,
  errors: pieces,
  /** Of all pieces together. */
  bytes: z.number(),
  /** A run: in the store, this run and all before have no pieces left that do not count. */
  swept: z.number().optional(),
  /** Ids of the files with the lines' results. */
  outputFile: z.string().optional(),
  errorFile: z.string().optional(),
  /** The span of the submission, as a traceparent; absent if the submission is not sampled. */
  trace: z.string().optional(),
  /** Why the batch failed as a whole; empty if it did not. */
  faults: z.array(fault),
});

export type Batch = Readonly<z.infer<typeof batch>>;
export type Pieces = Batch["output"];

const USED_AFTER_MS = 86_400_000;

/** How a batch ends that does not fail as a whole. */
export type Ending = "completed" | "expired" | "cancelled";

export function batchText(value: Batch): string {
  return JSON.stringify(value);
}

/**
 * Thrown for a text that this version cannot read. A newer version of Baton may have written the
 * text.
 */
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

export type NewBatch = Pick<
  Batch,
  "id" | "tenant" | "endpoint" | "models" | "inputFile" | "window" | "metadata" | "digest" | "trace"
>;

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

/** The batch in its next status, which begins at `now`. */
export function withStatus(one: Batch, status: BatchStatus, now: number): Batch {
  return { ...one, status, since: { ...one.since, [status]: now } };
}

/** @returns the batch as a cancel leaves it; undefined if the cancel comes too late */
export function cancelled(one: Batch, now: number): Batch | undefined {
  if (one.status === "cancelling" || one.status === "cancelled") return one;
  if (one.status === "validating" || one.status === "in_progress") return withStatus(one, "cancelling", now);
  return undefined;
}

/** Most ms from now for which the batch uses its input, even if no process releases the input. */
export function usedForMs({ expiresAt }: Batch, now: number): number {
  return Math.max(expiresAt - now, 0) + USED_AFTER_MS;
}

/** How the batch will end, by its status and the time. */
export function endingOf({ status, expiresAt }: Batch, now: number): Ending {
  if (status === "cancelling") return "cancelled";
  return now >= expiresAt ? "expired" : "completed";
}

/** The progress of a run since it last changed the batch. */
export interface Advance {
  readonly checkpoint: Checkpoint;
  readonly completed: number;
  readonly failed: number;
  /** Whether this run has written a further piece: of the output, of the errors. */
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

/** OpenAI's view of a batch, with times in seconds. */
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
