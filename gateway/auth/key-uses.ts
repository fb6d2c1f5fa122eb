/**
 * Notes when keys were used last. A gateway writes the keys of the last half minute together, so a
 * use costs an entry of a set.
 */
import type { Logger } from "pino";
import { writeUses } from "#shared/queue/owners/uses.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { Authenticator } from "./authenticator.js";
import type { CredentialTexts } from "./credential.js";
import { isTokenId, type Owner } from "./owner/owner.js";

export interface KeyUsesSettings {
  readonly authenticator: Pick<Authenticator, "judge">;
  readonly redis: RedisClient;
  /** Redis ms. */
  readonly now: () => number;
  readonly log: Logger;
}

/** Time between two writes, in ms. */
const WRITE_EVERY_MS = 30_000;

export class KeyUses {
  readonly #settings: KeyUsesSettings;
  #used = new Set<string>();

  constructor(settings: KeyUsesSettings) {
    this.#settings = settings;
  }

  /** Judges a credential, and notes the use of its key. */
  judge(texts: CredentialTexts): Owner | Promise<Owner> {
    const owner = this.#settings.authenticator.judge(texts);
    return owner instanceof Promise ? owner.then((found) => this.#note(found)) : this.#note(owner);
  }

  /** Writes the uses until `signal` aborts, and then the last of them. */
  async watch(signal: AbortSignal): Promise<void> {
    const { log } = this.#settings;
    for (let isLast = false; !isLast;) {
      await delay(WRITE_EVERY_MS, signal);
      isLast = signal.aborted;
      try {
        await this.#write();
      } catch (error) {
        log.debug({ error: String(error) }, "the uses of keys cannot be written now");
      }
    }
  }

  async #write(): Promise<void> {
    const { redis, now } = this.#settings;
    if (redis.status !== "ready") return;
    const used = this.#used;
    this.#used = new Set();
    try {
      await writeUses(redis, [...used], now());
    } catch (error) {
      for (const id of used) this.#used.add(id);
      throw error;
    }
  }

  #note(owner: Owner): Owner {
    // No store has the subjects of tokens.
    if (owner.keyId !== undefined && !isTokenId(owner.keyId)) this.#used.add(owner.keyId);
    return owner;
  }
}
