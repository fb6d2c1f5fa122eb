/** What is sent of an event: the same bytes at every attempt, since they are signed. */
import { z } from "zod";
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { printJson } from "#shared/json/print.js";
import { eventTypes, type EventType, type OutboxEntry } from "#shared/queue/events.js";
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

const dataOf: Readonly<Record<EventType, (facts: unknown) => unknown>> = {
  "sequence.expired": (facts) => {
    const { model, version, sequence, steps, last } = expired.parse(facts);
    const { kind, value } = decodeCorrelationId(sequence);
    return {
      model,
      version,
      // Beyond 2^53 it is printed in full, as clients have sent it.
      sequence_id: kind === "uint64" && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value,
      steps,
      last_step_at: last === undefined ? null : new Date(Number(last)).toISOString(),
    };
  },
  // What is noted of a batch is what its tenant reads of it.
  "batch.completed": (facts) => facts,
  "batch.failed": (facts) => facts,
  "batch.cancelled": (facts) => facts,
  "batch.expired": (facts) => facts,
};

export interface EventToSend {
  readonly type: EventType;
  readonly body: string;
}

/** When the script has noted it, in Redis's ms. */
export function noticedAt({ id }: OutboxEntry): number {
  return Number(id.slice(0, id.indexOf("-")));
}

/**
 * @throws UnreadableError for a type that this version does not know, and Error for what no script
 * has noted
 */
export function eventToSend(entry: OutboxEntry): EventToSend {
  const { type, facts } = entry;
  const known = eventTypes.find((one) => one === type);
  if (known === undefined) throw new UnreadableError(`an event of an unknown type '${type}'`);
  const timestamp = new Date(noticedAt(entry)).toISOString();
  return { type: known, body: printJson({ type, timestamp, data: dataOf[known](JSON.parse(facts)) }) };
}
