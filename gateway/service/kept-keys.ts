/**
 * New keys, kept for clients that repeat their call under an Idempotency-Key. A kept key is sealed
 * under the pepper, so an attacker who reads Redis has no key.
 */
import { hkdfSync } from "node:crypto";
import { fixedError } from "#shared/errors.js";
import { ownerKeys } from "#shared/queue/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { MadeKey } from "../auth/keys.js";
import { keyRecord } from "../auth/owner/records.js";
import { SealedError, SecretBox } from "../webhooks/secrets.js";
import type { Caller } from "./caller.js";
import { digestOf, firstText, nameOf } from "./repeated/once.js";

/** A call that makes a key. */
export interface MakingCall {
  readonly caller: Caller;
  /** The client's `Idempotency-Key`. */
  readonly key: string;
  /** A value in JSON that differs if the client asks for something else. */
  readonly asked: unknown;
}

interface Kept extends MadeKey {
  readonly asked: string;
}

const SEAL_BYTES = 32;

export class KeptKeys {
  readonly #redis: RedisClient;
  /** The first seals; all open. */
  readonly #boxes: readonly SecretBox[];

  /** @param peppers the newest first */
  constructor(redis: RedisClient, peppers: readonly Buffer[]) {
    this.#redis = redis;
    this.#boxes = peppers.map(
      (pepper) => new SecretBox(Buffer.from(hkdfSync("sha256", pepper, "", "baton: new keys, kept", SEAL_BYTES))),
    );
  }

  /**
   * The key of the first call. That call may have died before it wrote the key.
   * @param draft makes a key that Redis does not have yet
   * @throws InferenceError `idempotency_mismatch` if the first call has asked for something else
   */
  async first(
    { caller, key, asked }: MakingCall,
    draft: () => Promise<MadeKey>,
  ): Promise<MadeKey & { readonly isReplayed: boolean }> {
    // Of this caller's key alone: another key of the tenant may lack what the new key may do.
    const name = nameOf(caller, key);
    const digest = digestOf(asked);
    const { text: sealed, isFirst } = await firstText(this.#redis, ownerKeys.kept(name), async () => {
      const kept: Kept = { asked: digest, ...(await draft()) };
      return this.#boxes[0]?.seal(JSON.stringify(kept), name) ?? "";
    });
    const { asked: before, record, text } = JSON.parse(this.#open(sealed, name)) as Kept;
    if (before !== digest) throw fixedError("idempotency_mismatch", "usual");
    return { record: keyRecord.parse(record), text, isReplayed: !isFirst };
  }

  #open(sealed: string, name: string): string {
    let fault: unknown;
    for (const box of this.#boxes) {
      try {
        return box.open(sealed, name);
      } catch (error) {
        if (!(error instanceof SealedError)) throw error;
        fault = error;
      }
    }
    throw fault;
  }
}
