/** The facts of a job that admission notes with a request, as job.lua keeps these facts. */
import { repeats, stage } from "../../records/jobs.js";

export interface JobPart {
  /** How long the result of the job is kept, in ms. */
  readonly keptMs: number;
  /**
   * The record of a new job, which takes the name of its first request. Undefined for an existing
   * job that runs again.
   */
  readonly record: JobRecord | undefined;
  /** For an existing job: the name (`requestName`), and the stage that the job must have. */
  readonly again?: { readonly job: string } & Stage;
}

/**
 * The stage at which a process has seen a job. A process that changes a job names the stage, so
 * that of several processes only one makes the change.
 */
export interface Stage {
  /** The name of the job's last request; "" before the first. */
  readonly was: string;
  /** Redis ms at which a waiting job is due. */
  readonly dueAt?: number | undefined;
}

/** The stage as scripts take it. */
export function stageText({ was, dueAt }: Stage): string {
  return stage.write({ request: was, due: dueAt });
}

export interface JobRecord {
  /** The path that the job's body is for. */
  readonly type: string;
  /** The job's options, as JSON. */
  readonly options: string;
  /** How the gateway renders the result, as JSON. */
  readonly shown: string;
  /** The client's body; kept as long as the job may run again. */
  readonly body: Buffer;
  /** The schedule that has made the job, and the time of that schedule, in ms since 1970. */
  readonly schedule?: string;
  readonly tick?: string;
  /** Ms. No request begins more than this after the job was first due. */
  readonly wait?: string;
  /** When to try again, as `repeatsText` writes it; absent: never. */
  readonly repeats?: string;
  /** The job's own webhook: the events, with spaces between, and the address (JSON). */
  readonly tell?: string;
  readonly target?: string;
  /**
   * The job's labels, as `labelsText` writes these, if each label has a subject for the records.
   */
  readonly labels?: string;
  /** The span of the submission, as a traceparent; absent if the submission is not sampled. */
  readonly trace?: string;
}

/** Labels in the record of a job, as tokens. */
export function labelsText(labels: readonly string[]): string {
  return labels.join(" ");
}

/** @param text empty or absent if there are none */
export function parseLabels(text = ""): readonly string[] {
  return text === "" ? [] : text.split(" ");
}

/** How Baton tries a job again. */
export interface Repeats {
  readonly attempts: number;
  /**
   * How long the job waits before the second attempt, in ms, then the factor of each further wait.
   */
  readonly delayMs: number;
  readonly factor: number;
  readonly mostMs: number;
  /**
   * If the waiting jobs have more bytes than this, the job gets no further attempt; -1: no limit.
   */
  readonly mostBytes: number;
  /** The errors after which the job gets a further attempt. */
  readonly codes: readonly string[];
}

/** As job.lua reads the repeats. */
export function repeatsText({ attempts, delayMs, factor, mostMs, mostBytes, codes }: Repeats): string {
  const times = { attempts, delay: delayMs, factor, most: mostMs, budget: mostBytes };
  return repeats.write({ ...times, codes: `${codes.join(" ")} ` });
}

const nothing: JobRecord = { type: "", options: "", shown: "", body: Buffer.alloc(0) };

/** The bytes of a request in the queue, with the record of the job that it runs. */
export function bytesOf({ frame, job }: { readonly frame: Buffer; readonly job?: JobPart | undefined }): number {
  const { body, options, shown, target = "", labels = "" } = job?.record ?? nothing;
  return frame.length + body.length + options.length + shown.length + target.length + labels.length;
}

/** The arguments of admit.lua for a job. */
export function jobArguments({ keptMs, record, again }: JobPart) {
  return {
    name: again?.job ?? "",
    was: again === undefined ? "" : stageText(again),
    keep: keptMs,
    fields: Object.entries(record ?? {}).flat() as (string | Buffer)[],
  };
}
