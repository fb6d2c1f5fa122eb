/**
 * Makes the body of an event: the same bytes for every attempt, because the signature covers the
 * bytes.
 */
import { z } from "zod";
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { printJson } from "#shared/json/print.js";
import { parseRequestName, type RequestAddress } from "#shared/queue/address.js";
import { eventTypes, type EventType } from "#shared/queue/pieces/events.js";
import type { OutboxEntry } from "#shared/queue/webhooks/outbox.js";
import { isJobEvent, notedJob, type JobEventType, type NotedJob } from "#shared/queue/pieces/job-events.js";
import type { ToldJob } from "../../jobs/view.js";
import { parseTarget, type Target } from "../../webhooks/target.js";
import { UnreadableError } from "../../webhooks/webhook.js";

/** The facts that events.lua notes about a sequence. */
const expired = z.object({
  model: z.string(),
  version: z.string(),
  sequence: z.string(),
  steps: z.number(),
  /** Redis ms; absent if the script did not know the time. */
  last: z.string().optional(),
});

/** Renders a job's state at an event, as its tenant reads the job. */
export interface JobTeller {
  toldOf(job: RequestAddress, noted: NotedJob): Promise<ToldJob>;
}

interface Told {
  /** JSON. */
  readonly data: string;
  /** The id of the event's job, or "". */
  readonly job: string;
  /** The job's own webhook; absent if the job has none that wants the event. */
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
    // Prints an id beyond 2^53 in full, as clients have sent the id.
    sequence_id: kind === "uint64" && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value,
    steps,
    last_step_at: last === undefined ? null : new Date(Number(last)).toISOString(),
  };
  return { data: printJson(data), job: "" };
}

function toldOf(type: Exclude<EventType, JobEventType>, facts: unknown): Told {
  // The noted facts of a batch are its view.
  return type === "sequence.expired" ? toldOfSequence(facts) : { data: printJson(facts), job: "" };
}

async function toldOfJob(bucket: number, facts: unknown, jobs: JobTeller): Promise<Told> {
  const noted = notedJob.parse(facts);
  const { id, view } = await jobs.toldOf({ bucket, model: noted.model, ...parseRequestName(noted.job) }, noted);
  return { data: view, job: id, own: noted.own === undefined ? undefined : parseTarget(noted.own) };
}

/** When the script noted the event, in ms by Redis's clock. */
export function noticedAt({ id }: OutboxEntry): number {
  return Number(id.slice(0, id.indexOf("-")));
}

/**
 * @param bucket whose outbox has the event
 * @throws UnreadableError for a type that this version does not know; `unavailable` if Redis does
 * not answer; another Error for facts that no script writes
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
