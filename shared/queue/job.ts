/** What admission notes of a request that runs a job, as job.lua keeps it. */

export interface JobPart {
  /** How long the result of the job is kept, in ms. */
  readonly keptMs: number;
  /**
   * What is noted of a new job, which is named after its first request. Undefined for one that is
   * there already and is run once more.
   */
  readonly record: JobRecord | undefined;
  /** For one that is there: its name (`requestName`), and what it has to be at. */
  readonly again?: { readonly job: string } & Stage;
}

/**
 * A process that changes a job says at which stage it has seen it, so that of many one changes it.
 */
export interface Stage {
  /** The name of its last request; "" before the first. */
  readonly was: string;
  /** Redis ms at which it is due, if it waits for that. */
  readonly dueAt?: number | undefined;
}

/** As job.lua reads it. */
export function stageText({ was, dueAt }: Stage): string {
  return `${was}|${dueAt ?? ""}`;
}

export interface JobRecord {
  /** Which of the paths its body is for. */
  readonly type: string;
  /** Its options, as JSON. */
  readonly options: string;
  /** How its result is rendered, as JSON. */
  readonly shown: string;
  /** What its client has sent; kept as long as the job may be run once more. */
  readonly body: Buffer;
  /** Which schedule has made it, and at which of its times, in ms since 1970. */
  readonly schedule?: string;
  readonly tick?: string;
  /** No request is begun so many ms later than it was first due. */
  readonly wait?: string;
  /** How it is tried more than once, as `repeatsText` has it; absent: it is not. */
  readonly repeats?: string;
  /** Of a webhook of its own: its events, with spaces between, and where they go (JSON). */
  readonly tell?: string;
  readonly target?: string;
  /** Its labels, as `labelsText` has them, where its records are published for each. */
  readonly labels?: string;
}

/** Labels in the record of a job, as tokens. */
export function labelsText(labels: readonly string[]): string {
  return labels.join(" ");
}

/** @param text empty or absent where there are none */
export function parseLabels(text = ""): readonly string[] {
  return text === "" ? [] : text.split(" ");
}

/** How a job is tried more than once. */
export interface Repeats {
  readonly attempts: number;
  /** How long it waits before the second attempt, in ms, and how much longer before each next. */
  readonly delayMs: number;
  readonly factor: number;
  readonly mostMs: number;
  /** With more bytes of jobs that wait it is not tried again; -1: no limit. */
  readonly mostBytes: number;
  /** After which errors. */
  readonly codes: readonly string[];
}

/** As job.lua reads it. */
export function repeatsText({ attempts, delayMs, factor, mostMs, mostBytes, codes }: Repeats): string {
  return `${attempts} ${delayMs} ${factor} ${mostMs} ${mostBytes} ${codes.join(" ")} `;
}

const nothing: JobRecord = { type: "", options: "", shown: "", body: Buffer.alloc(0) };

/** What a request takes in the queue, in bytes, with the record of the job that it runs. */
export function bytesOf({ frame, job }: { readonly frame: Buffer; readonly job?: JobPart | undefined }): number {
  const { body, options, shown, target = "", labels = "" } = job?.record ?? nothing;
  return frame.length + body.length + options.length + shown.length + target.length + labels.length;
}

/** The arguments that say this of the request with this number, counted from 1 in its call. */
export function jobArguments(number: number, { keptMs, record, again }: JobPart): (string | number | Buffer)[] {
  const fields = Object.entries(record ?? {}).flat() as (string | Buffer)[];
  return [number, again?.job ?? "", again === undefined ? "" : stageText(again), keptMs, fields.length, ...fields];
}
