/**
 * Notices which messages of workers are missing. Messages of a channel have numbers, so the next
 * message shows that an earlier one got lost. A worker with requests of this gateway under way says
 * so twice a second, so its death or a cut link shows as silence. Only then does the gateway ask
 * Redis about all open requests: mere time is no reason.
 */
import type { Mark } from "#shared/contract/reply.js";

interface Sender {
  channel: number;
  /** Number of the last message. */
  number: number;
  /** Whether the worker has said that nothing is under way; the worker is silent then. */
  isAtRest: boolean;
  /** When the last message came, in ms on `performance.now()`'s clock. */
  heardAt: number;
  /** How many looks into Redis this silence has caused. */
  looks: number;
}

/** A message's place after the earlier ones; `old` is a repeated message, or one out of turn. */
export type Arrival = "next" | "after a gap" | "old";

/** A worker without a message for this long is silent, in ms: two of its beats. */
const SILENT_MS = 1_000;
/**
 * Looks into Redis for a silent worker, a second apart. A live worker notices meanwhile that it
 * does not reach NATS, and leaves the names of requests in Redis instead.
 */
const LOOKS = 8;
/** Beyond this number, the gateway forgets workers at rest, the oldest first. */
const MOST_SENDERS = 10_000;

export class ReplyGaps {
  readonly #senders = new Map<string, Sender>();

  /**
   * Takes a message that surely comes from a worker of this deployment.
   * @param now in ms on `performance.now()`'s clock
   */
  receive({ sender, channel, number, kind }: Mark, now: number): Arrival {
    const known = this.#senders.get(sender);
    const isSameChannel = known?.channel === channel;
    if (known !== undefined && (channel < known.channel || (isSameChannel && number <= known.number))) return "old";
    const last = isSameChannel ? known.number : 0;
    // A worker forgets only channels that are at rest.
    const hasLostEnd = known !== undefined && !isSameChannel && !known.isAtRest;
    this.#senders.delete(sender);
    this.#senders.set(sender, { channel, number, isAtRest: kind === "rest", heardAt: now, looks: 0 });
    this.#forgetOldest();
    return number === last + 1 && !hasLostEnd ? "next" : "after a gap";
  }

  /** Whether a silent worker is a reason to look into Redis now; to be called every few ms. */
  hasSilence(now: number): boolean {
    let isDue = false;
    for (const one of this.#senders.values()) {
      if (one.isAtRest || now - one.heardAt < SILENT_MS * (one.looks + 1)) continue;
      isDue = true;
      // Other workers have taken its requests over, or the worker leaves the names of requests in
      // Redis.
      if (++one.looks === LOOKS) one.isAtRest = true;
    }
    return isDue;
  }

  #forgetOldest(): void {
    if (this.#senders.size <= MOST_SENDERS) return;
    for (const [sender, { isAtRest }] of this.#senders) {
      if (!isAtRest) continue;
      this.#senders.delete(sender);
      return;
    }
  }
}
