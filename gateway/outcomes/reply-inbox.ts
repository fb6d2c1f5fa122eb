/**
 * Takes the messages that came on this gateway's subject. Any client of NATS may publish there, so
 * a message counts only if a process of this deployment has made it for this gateway, and only
 * once.
 */
import type { Logger } from "pino";
import { decodeMark, decodeReplies, isAuthentic, replyKey, type Mark, type Reply } from "#shared/contract/reply.js";
import { realWorld, type World } from "#shared/world.js";
import { ReplyGaps } from "./reply-gaps.js";

export interface InboxSettings {
  /** This process's name in entries and subjects. */
  readonly gateway: string;
  /** The deployment's secret. */
  readonly secret: () => Buffer;
  readonly world?: World;
  /** Called for each message that no process of this deployment has made, with the reason. */
  readonly onForged?: ((reason: string) => void) | undefined;
  readonly log: Logger;
}

export interface Received {
  readonly replies: readonly Reply[];
  /** Whether earlier messages are missing. */
  readonly hasGap: boolean;
}

const nothing: Received = { replies: [], hasGap: false };
/** The log mentions refused messages at most this often, in ms. */
const LOG_EVERY_MS = 10_000;
/** Beyond this number, the inbox forgets all keys, because many belong to workers that are gone. */
const MOST_KEYS = 10_000;

export class ReplyInbox {
  readonly #settings: InboxSettings;
  readonly #world: World;
  readonly #gaps = new ReplyGaps();
  /** Keys by sender, of senders that have proved to have them, and the secret of these keys. */
  #keys = new Map<string, Buffer>();
  #secret: Buffer | undefined;
  #refused = 0;
  #loggedAt = -Infinity;

  constructor(settings: InboxSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
  }

  receive(message: Buffer): Received {
    try {
      const mark = decodeMark(message);
      if (!this.#isGenuine(mark, message)) {
        this.#refuse("not made by a worker of this deployment");
        return nothing;
      }
      const arrival = this.#gaps.receive(mark, this.#world.now());
      if (arrival === "old") return nothing;
      return { replies: decodeReplies(message), hasGap: arrival === "after a gap" };
    } catch (error) {
      this.#refuse(String(error));
      return nothing;
    }
  }

  /** See `ReplyGaps`. */
  hasSilence(now: number): boolean {
    return this.#gaps.hasSilence(now);
  }

  #isGenuine({ sender }: Mark, message: Buffer): boolean {
    const { gateway } = this.#settings;
    const secret = this.#settings.secret();
    if (this.#secret?.equals(secret) !== true || this.#keys.size > MOST_KEYS) this.#keys = new Map();
    this.#secret = secret;
    const known = this.#keys.get(sender);
    const key = known ?? replyKey(secret, sender, gateway);
    if (!isAuthentic(key, message)) return false;
    if (known === undefined) this.#keys.set(sender, key);
    return true;
  }

  #refuse(reason: string): void {
    this.#refused++;
    this.#settings.onForged?.(reason);
    const now = this.#world.now();
    if (now - this.#loggedAt < LOG_EVERY_MS) return;
    this.#settings.log.warn({ reason, count: this.#refused }, "reply messages ignored; Redis has the outcomes");
    this.#refused = 0;
    this.#loggedAt = now;
  }
}
