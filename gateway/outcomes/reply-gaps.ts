/**
 * Notices which messages of workers are missing. Messages of a channel are numbered, so one that
 * was lost shows at the next. A worker that has something under way for this gateway says so twice
 * a second, so its death or a cut link shows as silence. Only then is Redis looked into for all
 * open requests: time that passes is no reason.
 */
import type { Mark } from "#shared/contract/reply.js";

interface Sender {
  channel: number;
  /** That of the last message. */
  number: number;
  /** Whether it has said that nothing is under way; nothing is heard of it then. */
  isAtRest: boolean;
  /** When it was last heard of, in ms on `performance.now()`'s clock. */
  heardAt: number;
  /** How often Redis was looked into since, because it was not heard of. */
  looks: number;
}

/** What a message says about those before it; `old` is one that came before, or is out of turn. */
export type Arrival = "next" | "after a gap" | "old";

/** A worker is silent when nothing was heard of it for this long, in ms: two of its beats. */
const SILENT_MS = 1_000;
/**
 * For a silent worker Redis is looked into this often, a second apart. A worker that lives notices
 * meanwhile that it does not reach NATS, and leaves word in Redis instead.
 */
const LOOKS = 8;
/** Workers of which nothing is expected are forgotten when there are more, the oldest first. */
const MOST_SENDERS = 10_000;

export class ReplyGaps {
  readonly #senders = new Map<string, Sender>();

  /**
   * A message has arrived, surely from a worker of this deployment.
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

  /**
   * Whether Redis is to be looked into now because a worker is silent; to be called every few ms.
   */
  hasSilence(now: number): boolean {
    let isDue = false;
    for (const one of this.#senders.values()) {
      if (one.isAtRest || now - one.heardAt < SILENT_MS * (one.looks + 1)) continue;
      isDue = true;
      // Whatever it had under way, other workers have taken over, or it tells in another way.
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
