/**
 * The messages of one call on their way to its handler. They count in the memory of all bodies from
 * their first byte until the handler has taken them, because the library holds them for as long.
 */
import { fixedError } from "#shared/errors.js";
import { bodyTooLarge } from "../../formats/limits.js";
import { uncountedBytes, type BodyRoom } from "../../http/body.js";
import { inflate } from "../../http/inflate.js";

/** The length of a message stands in the four bytes behind its first (gRPC over HTTP/2). */
const HEAD_BYTES = 5;

interface Message {
  /** In memory, with both forms of a message that was compressed. */
  bytes: number;
}

export class Arrivals {
  readonly #room: BodyRoom;
  readonly #most: number;
  /** The messages that the handler has not taken, oldest first. The last may not be whole. */
  readonly #messages: Message[] = [];
  /** The whole ones among them that are still as they came, oldest first. */
  readonly #packed: Message[] = [];
  readonly #head: number[] = [];
  /** Bytes of the last message that are still to come. */
  #left = 0;
  #held = 0;
  /**
   * Since when a message is coming that is not whole, or that its handler cannot get yet; undefined
   * if there is none.
   */
  #since: number | undefined;
  /** How many messages the handler has and has not taken. */
  #given = 0;
  /** Gives the handler its next message. */
  #next: (() => void) | undefined;
  #isOver = false;
  readonly #isSingle: boolean;
  #isHandled = false;

  /**
   * @param most bytes of a message, before and after it is inflated
   * @param isSingle whether the call has one message, which its handler gets when the client has
   * ended its side
   */
  constructor(room: BodyRoom, most: number, isSingle = false) {
    this.#room = room;
    this.#most = most;
    this.#isSingle = isSingle;
  }

  /** Whether a message is coming that is not whole. */
  get isComing(): boolean {
    return this.#head.length > 0;
  }

  /**
   * Counts bytes that have come.
   * @throws InferenceError if a message is too large, or if there is no room for it now
   */
  receive(bytes: Buffer): void {
    if (this.#isOver) return;
    for (let at = 0; at < bytes.length;) {
      if (this.#head.length < HEAD_BYTES) {
        this.#head.push(bytes[at++] ?? 0);
        if (this.#head.length === HEAD_BYTES) this.#begin();
      } else {
        const some = Math.min(this.#left, bytes.length - at);
        this.#left -= some;
        at += some;
        this.#add(this.#messages.at(-1), some);
      }
      if (this.#head.length === HEAD_BYTES && this.#left === 0) this.#end();
    }
    if (this.isComing || (this.#isSingle && !this.#isHandled)) this.#since ??= performance.now();
    this.#resize();
  }

  #begin(): void {
    const [, a = 0, b = 0, c = 0, d = 0] = this.#head;
    this.#left = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d;
    if (this.#left > this.#most) throw bodyTooLarge(this.#most);
    this.#messages.push({ bytes: 0 });
  }

  #end(): void {
    this.#head.length = 0;
    // A client that does not end its side would hold the memory for as long as it likes.
    if (!this.#isSingle) this.#since = undefined;
    const whole = this.#messages.at(-1);
    if (whole !== undefined) this.#packed.push(whole);
  }

  #add(message: Message | undefined, bytes: number): void {
    if (message === undefined) return;
    message.bytes += bytes;
    this.#held += bytes;
  }

  #resize(): void {
    if (this.#held > uncountedBytes) this.#room.grow(this.#held);
    else this.#room.release();
  }

  /**
   * Undoes the compression of the next whole message.
   * @param encoding undefined if the message is not compressed
   * @throws InferenceError
   */
  unpack(packed: Buffer, encoding: string | undefined): Buffer | Promise<Buffer> {
    const message = this.#packed.shift();
    if (encoding === undefined) return packed;
    const grow = (bytes: number): void => {
      if (this.#isOver) throw fixedError("cancelled", "bodyIncomplete");
      this.#add(message, bytes - (message?.bytes ?? 0));
      this.#resize();
    };
    // The bytes of tensors may expand by any ratio.
    return inflate(packed, encoding, { maxBytes: this.#most, jsonBytes: 0 }, { grow, release: () => undefined });
  }

  /**
   * Gives the handler a message: a large one only when it has taken those before, because the
   * library would read on, and a client that does not wait for answers would fill the memory.
   * @param give does so
   */
  give(give: () => void): void {
    if (!this.#isSingle && this.#given > 0 && this.#held > uncountedBytes) {
      this.#next = give;
      return;
    }
    this.#given++;
    give();
  }

  /** The call is at its handler, so its only message has come. */
  handled(): void {
    if (!this.#isSingle) return;
    this.#isHandled = true;
    this.#since = undefined;
  }

  /** The handler has taken the oldest of its messages. */
  taken(): void {
    if (this.#isOver) return;
    this.#held -= this.#messages.shift()?.bytes ?? 0;
    this.#given--;
    this.#resize();
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) this.give(next);
  }

  /** The gateway does not read now, so the message at hand comes no further. */
  pause(now: number): void {
    if (this.#since !== undefined) this.#since = now;
  }

  /** Whether the message at hand has been coming for longer than this. */
  isLate(now: number, ms: number): boolean {
    return this.#since !== undefined && now - this.#since >= ms;
  }

  /** The call has its status, or its client has left. */
  close(): void {
    this.#isOver = true;
    this.#since = undefined;
    this.#messages.length = 0;
    this.#room.release();
  }
}
