/** Sends committed records to whoever reads the stream. NATS is the fast path: a lost message costs a reader a look into the log. */
import { tokenSubject, type Lane } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";

/** Tells readers to look into the log. */
const LOOK = Buffer.alloc(0);

export function publishTokens(
  bus: Bus,
  tenant: string,
  lane: Lane,
  request: string,
  records: readonly (string | Buffer)[],
): void {
  const subject = tokenSubject(tenant, lane, request);
  for (const record of records) {
    const message = typeof record === "string" ? Buffer.from(record) : record;
    bus.publish(subject, message.length <= bus.maxBytes() ? message : LOOK);
  }
}
