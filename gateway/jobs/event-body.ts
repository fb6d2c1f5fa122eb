/** What is sent of an event: the same bytes at every attempt, since they are signed. */
import { z } from "zod";
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { printJson } from "#shared/json/print.js";
import { parseRequestName, type RequestAddress } from "#shared/queue/address.js";
import { eventTypes, type EventType, type OutboxEntry } from "#shared/queue/events.js";
import { isJobEvent, notedJob, type JobEventType, type NotedJob } from "#shared/queue/job-events.js";
import type { ToldJob } from "../job-paths/view.js";
import { parseTarget, type Target } from "../webhooks/target.js";
import { UnreadableError } from "../webhooks/webhook.js";

/** What events.lua notes of a sequence. */
const expired = z.object({
  model: z.string(),
  version: z.string(),
  sequence: z.string(),
  steps: z.number(),
  /** Redis ms; absent where the script did not know it. */
  last: z.string().optional(),
});

/** Says how a job stood when something happened to it, as its tenant reads it. */
export interface JobTeller {
  toldOf(job: RequestAddress, noted: NotedJob): Promise<ToldJob>;
}

interface Told {
  /** JSON. */
  readonly data: string;
  /** The id of the job that it tells of, or "". */
  readonly job: string;
  /** A webhook of the job's own that wants it. */
  readonly own?: Target | undefined;
}

export interface EventToSend extends Omit<Told, "data"> {
  readonly type: EventType;
  readonly body: string;
}

function toldOfSequence(facts: unknown): Told {
  const { model, version, sequence, steps, last } = expired.parse(facts);
  const { kind, value } = decodeCorrelationId(sequence);
  const data = {
    model,
    version,
    // Beyond 2^53 it is printed in full, as clients have sent it.
    sequence_id: kind === "uint64" && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value,
    steps,
    last_step_at: last === undefined ? null : new Date(Number(last)).toISOString(),
  };
  return { data: printJson(data), job: "" };
}

function toldOf(type: Exclude<EventType, JobEventType>, facts: unknown): Told {
  // What is noted of a batch is what its tenant reads of it.
  return type === "sequence.expired" ? toldOfSequence(facts) : { data: printJson(facts), job: "" };
}

async function toldOfJob(bucket: number, facts: unknown, jobs: JobTeller): Promise<Told> {
  const noted = notedJob.parse(facts);
  const { id, view } = await jobs.toldOf({ bucket, model: noted.model, ...parseRequestName(noted.job) }, noted);
  return { data: view, job: id, own: noted.own === undefined ? undefined : parseTarget(noted.own) };
}

/** When the script has noted it, in Redis's ms. */
export function noticedAt({ id }: OutboxEntry): number {
  return Number(id.slice(0, id.indexOf("-")));
}

/**
 * @param bucket whose outbox has it
 * @throws UnreadableError for a type that this version does not know; `unavailable` where Redis
 * cannot be asked; another Error for what no script has noted
 */
export async function eventToSend(bucket: number, entry: OutboxEntry, jobs: JobTeller): Promise<EventToSend> {
  const { type, facts } = entry;
  const known = eventTypes.find((one) => one === type);
  if (known === undefined) throw new UnreadableError(`an event of an unknown type '${type}'`);
  const given = JSON.parse(facts) as unknown;
  const { data, job, own } = isJobEvent(known) ? await toldOfJob(bucket, given, jobs) : toldOf(known, given);
  const head = printJson({ type, timestamp: new Date(noticedAt(entry)).toISOString() });
  // The data is JSON already.
  return { type: known, job, own, body: `${head.slice(0, -1)},"data":${data}}` };
}
