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
  /** What its client has sent; kept as long as the job may be run once more. */
  readonly body: Buffer;
  /** Of a webhook of its own: its events, with spaces between, and where they go (JSON). */
  readonly tell?: string;
  readonly target?: string;
}

const nothing: JobRecord = { type: "", options: "", shown: "", body: Buffer.alloc(0) };

/** What a request takes in the queue, in bytes, with the record of the job that it runs. */
export function bytesOf({ frame, job }: { readonly frame: Buffer; readonly job?: JobPart | undefined }): number {
  const { body, options, shown, target = "" } = job?.record ?? nothing;
  return frame.length + body.length + options.length + shown.length + target.length;
}

/** The arguments that say this of the request with this number, counted from 1 in its call. */
export function jobArguments(number: number, { keptMs, record, again }: JobPart): (string | number | Buffer)[] {
  const fields = Object.entries(record ?? {}).flat() as (string | Buffer)[];
  return [number, again?.job ?? "", again?.was ?? "", keptMs, fields.length, ...fields];
}
