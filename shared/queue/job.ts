/** What admission notes of a request that runs a job, as job.lua keeps it. */

export interface JobPart {
  /** How long the result of the job is kept, in ms. */
  readonly keptMs: number;
  /**
   * What is noted of a new job, which is named after its first request. Undefined for one that is
   * there already and is run once more.
   */
  readonly record: JobRecord | undefined;
  /** For one that is there: its name (`requestName`), and that of its last request. */
  readonly again?: { readonly job: string; readonly was: string };
}

export interface JobRecord {
  /** Which of the paths its body is for. */
  readonly type: string;
  /** Its options, as JSON. */
  readonly options: string;
  /** How its result is rendered, as JSON. */
  readonly shown: string;
  /** All that its client has sent; kept as long as the job may be run once more. */
  readonly body: Buffer;
  /** Which schedule has made it, and at which of its times, in ms since 1970. */
  readonly schedule?: string;
  readonly tick?: string;
}

/** What a request takes in the queue, in bytes, with the record of the job that it runs. */
export function bytesOf({ frame, job }: { readonly frame: Buffer; readonly job?: JobPart | undefined }): number {
  const record = job?.record;
  const recorded = record === undefined ? 0 : record.body.length + record.options.length + record.shown.length;
  return frame.length + recorded;
}

/** The arguments that say this of the request with this number, counted from 1 in its call. */
export function jobArguments(number: number, { keptMs, record, again }: JobPart): (string | number | Buffer)[] {
  const fields = Object.entries(record ?? {}).flat() as (string | Buffer)[];
  return [number, again?.job ?? "", again?.was ?? "", keptMs, fields.length, ...fields];
}
