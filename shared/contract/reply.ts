/**
 * Messages that a worker sends a gateway over NATS after a commit: one message for all outcomes of
 * a batch that this gateway waits for, and beats between such messages. NATS is only the fast path:
 * after a lost message the gateway reads Redis. A message is
 *
 *     16 bytes tag | 8 bytes sender | u40 BE channel | u48 BE number | u8 kind | replies
 *
 * and each reply
 *
 *     u8 name length | name | u8 kind | u32 LE body length | body
 *
 * The tag proves that a process of this deployment made the message for this gateway. Without the
 * tag, any client of NATS could forge messages on the gateway's subject. The tag is the AES-256-GCM
 * tag over all later bytes, with nothing encrypted. For a body of 16 KB that takes a ninth of the
 * time of HMAC-SHA256.
 */
import { createCipheriv, createHmac, timingSafeEqual } from "node:crypto";
import type { StoredOutcome } from "./outcome.js";

export interface Reply {
  /** The request's name (`requestName` in shared/queue/address.ts). */
  readonly name: string;
  /**
   * `look`: the outcome is in Redis. It is too large to send, or the worker lost the commit's
   * reply.
   */
  readonly kind: StoredOutcome["kind"] | "look";
  readonly body: Buffer;
}

/**
 * Identifies a message and reveals gaps. A channel is all messages from a worker to a gateway,
 * numbered 1, 2, 3 and so on.
 */
export interface Mark {
  /** Drawn at each start of a worker: 16 hex digits. */
  readonly sender: string;
  /** The channel's number within the sender, from 1; later channels have higher numbers. */
  readonly channel: number;
  readonly number: number;
  /**
   * - `replies`: the message brings outcomes, and more messages follow
   * - `beat`: the worker lives, and more messages follow
   * - `rest`: no outcome is under way; the next message comes with the next work
   */
  readonly kind: (typeof markKinds)[number];
}

const markKinds = ["replies", "beat", "rest"] as const;
const replyKinds = ["result", "error", "look"] as const;

const TAG_BYTES = 16;
/** The offset of each part of a message. */
const AT = { sender: TAG_BYTES, channel: 24, number: 29, kind: 35, replies: 36 } as const;
/** GCM's nonce: the channel and the number, which are unique for each message under a key. */
const NONCE_BYTES = AT.kind - AT.channel + 1;

/** The most bytes of a message besides the replies' names and bodies, and of each reply. */
export const MESSAGE_OVERHEAD_BYTES = AT.replies;
export const REPLY_OVERHEAD_BYTES = 6;

/**
 * The key for the tags of all messages from one sender to one gateway.
 * @param secret the deployment's; only processes that can read Redis know the secret
 */
export function replyKey(secret: Buffer, sender: string, gateway: string): Buffer {
  return createHmac("sha256", secret).update(`replies ${sender} ${gateway}`).digest();
}

export function encodeMessage(key: Buffer, mark: Mark, replies: readonly Reply[]): Buffer {
  const bytes = replies.reduce((sum, { name, body }) => sum + REPLY_OVERHEAD_BYTES + name.length + body.length, 0);
  const message = Buffer.allocUnsafe(AT.replies + bytes);
  message.write(mark.sender, AT.sender, "hex");
  message.writeUIntBE(mark.channel, AT.channel, 5);
  message.writeUIntBE(mark.number, AT.number, 6);
  message.writeUInt8(markKinds.indexOf(mark.kind), AT.kind);
  let at: number = AT.replies;
  for (const { name, kind, body } of replies) {
    at = message.writeUInt8(name.length, at);
    at += message.write(name, at, "latin1");
    at = message.writeUInt8(replyKinds.indexOf(kind), at);
    at = message.writeUInt32LE(body.length, at);
    at += body.copy(message, at);
  }
  tagOf(key, message).copy(message);
  return message;
}

/** @throws RangeError or TypeError for an incomplete message */
export function decodeMark(message: Buffer): Mark {
  const kind = markKinds[message.readUInt8(AT.kind)];
  if (kind === undefined) throw new TypeError("a reply message has no known kind");
  return {
    sender: message.toString("hex", AT.sender, AT.channel),
    channel: message.readUIntBE(AT.channel, 5),
    number: message.readUIntBE(AT.number, 6),
    kind,
  };
}

/** Whether the message was made with this key. */
export function isAuthentic(key: Buffer, message: Buffer): boolean {
  return timingSafeEqual(message.subarray(0, TAG_BYTES), tagOf(key, message));
}

/** @throws RangeError or TypeError for an incomplete message */
export function decodeReplies(message: Buffer): Reply[] {
  const replies: Reply[] = [];
  for (let at: number = AT.replies; at < message.length;) {
    const nameEnd = at + 1 + message.readUInt8(at);
    const kind = replyKinds[message.readUInt8(nameEnd)];
    const bodyEnd = nameEnd + 5 + message.readUInt32LE(nameEnd + 1);
    if (kind === undefined || bodyEnd > message.length) throw new TypeError("reply message is not whole");
    replies.push({
      name: message.toString("latin1", at + 1, nameEnd),
      kind,
      body: message.subarray(nameEnd + 5, bodyEnd),
    });
    at = bodyEnd;
  }
  return replies;
}

function tagOf(key: Buffer, message: Buffer): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  message.copy(nonce, 0, AT.channel, AT.kind);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(message.subarray(TAG_BYTES));
  cipher.final();
  return cipher.getAuthTag();
}
