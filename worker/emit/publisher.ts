/** Sends committed outcomes to the gateways that wait for them, one message per gateway and batch. Losing one costs time, never an answer. */
import type { Delivery } from "#shared/contract/entry.js";
import type { StoredOutcome } from "#shared/contract/outcome.js";
import { encodeReplies, type Reply } from "#shared/contract/reply.js";
import { replySubject } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";

export interface Publication {
  readonly delivery: Delivery;
  /** Undefined: the gateway is to look into Redis. */
  readonly outcome: StoredOutcome | undefined;
}

const LOOK = Buffer.alloc(0);
/** Room for ids and lengths around a body. */
const OVERHEAD_BYTES = 300;

export function publish(bus: Bus, publications: readonly Publication[]): void {
  const byGateway = new Map<string, Reply[]>();
  for (const { delivery, outcome } of publications) {
    const fits = outcome !== undefined && outcome.body.length + OVERHEAD_BYTES < bus.maxBytes();
    const reply: Reply = fits
      ? { request: delivery.request, ...outcome }
      : { request: delivery.request, kind: "look", body: LOOK };
    const replies = byGateway.get(delivery.gateway);
    if (replies === undefined) byGateway.set(delivery.gateway, [reply]);
    else replies.push(reply);
  }
  for (const [gateway, replies] of byGateway) {
    for (const message of messages(replies, bus.maxBytes())) bus.publish(replySubject(gateway), message);
  }
}

/** As few messages as the server's limit allows. */
function messages(replies: readonly Reply[], maxBytes: number): Buffer[] {
  const done: Buffer[] = [];
  let current: Reply[] = [];
  let size = 0;
  for (const reply of replies) {
    const bytes = reply.body.length + OVERHEAD_BYTES;
    if (size + bytes > maxBytes && current.length > 0) {
      done.push(encodeReplies(current));
      current = [];
      size = 0;
    }
    current.push(reply);
    size += bytes;
  }
  if (current.length > 0) done.push(encodeReplies(current));
  return done;
}
