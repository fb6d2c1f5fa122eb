/**
 * What a worker sends a gateway over NATS after a commit: one message for all outcomes of a batch that this gateway waits for. NATS is only
 * the fast path: a lost message costs the gateway a look into Redis.
 *
 *     repeated: u8 request length | request | u8 kind | u32 LE body length | body
 */
import type { StoredOutcome } from "./outcome.js";

/** `look`: the outcome is in Redis, too large to send or committed under a lost reply. */
export type Reply = { readonly request: string; readonly kind: StoredOutcome["kind"] | "look"; readonly body: Buffer };

const kinds = ["result", "error", "look"] as const;

export function encodeReplies(replies: readonly Reply[]): Buffer {
  return Buffer.concat(
    replies.flatMap(({ request, kind, body }) => {
      const id = Buffer.from(request, "latin1");
      const size = Buffer.allocUnsafe(5);
      size.writeUInt8(kinds.indexOf(kind), 0);
      size.writeUInt32LE(body.length, 1);
      return [Buffer.of(id.length), id, size, body];
    }),
  );
}

/** @throws RangeError or TypeError on a message that is not whole. */
export function decodeReplies(message: Buffer): Reply[] {
  const replies: Reply[] = [];
  for (let at = 0; at < message.length;) {
    const idEnd = at + 1 + message.readUInt8(at);
    const kind = kinds[message.readUInt8(idEnd)];
    const bodyEnd = idEnd + 5 + message.readUInt32LE(idEnd + 1);
    if (kind === undefined || bodyEnd > message.length) throw new TypeError("reply message is not whole");
    replies.push({
      request: message.toString("latin1", at + 1, idEnd),
      kind,
      body: message.subarray(idEnd + 5, bodyEnd),
    });
    at = bodyEnd;
  }
  return replies;
}
