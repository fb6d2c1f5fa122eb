/**
 * A change that a client may ask for again under the same Idempotency-Key. The first call keeps a
 * draft of the change before it makes the change. So a repeated call makes the same change if the
 * first one died, and else finds that it is made.
 */
import { createHash } from "node:crypto";
import { fixedError, InferenceError } from "#shared/errors.js";
import { dropKept, keepAnew, keepFirst, readKept } from "#shared/queue/kept-answers.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis, changeInRedis } from "../../admission/ask-redis.js";

/** Whose key it is. Another key of the tenant may lack the right to see the answer. */
export interface RepeatingCaller {
  readonly tenant: string;
  readonly keyId: string | undefined;
}

export interface RepeatableCall<Draft> {
  /** The call's key in Redis, with a name from `nameOf`; undefined without an Idempotency-Key. */
  readonly place: string | undefined;
  /** A value in JSON that differs if the client asks for something else. */
  readonly asked: unknown;
  /** Drafts the change. The draft is kept as JSON. */
  readonly draft: () => Promise<Draft>;
  /** Makes the change. A second call with the same draft changes nothing more. */
  readonly make: (draft: Draft) => Promise<void>;
}

interface Kept<Draft> {
  readonly asked: string;
  readonly draft: Draft;
  readonly isMade: boolean;
}

/** After these errors the change may be made after all. */
const unsure: readonly string[] = ["outcome_unknown", "unavailable"];

/** @returns the draft of the first call, and whether this call repeats it */
export async function once<Draft>(
  redis: RedisClient,
  { place, asked, draft, make }: RepeatableCall<Draft>,
): Promise<{ readonly draft: Draft; readonly isReplayed: boolean }> {
  if (place === undefined) {
    const drafted = await draft();
    await make(drafted);
    return { draft: drafted, isReplayed: false };
  }
  const digest = digestOf(asked);
  const { text, isFirst } = await firstText(redis, place, async () =>
    JSON.stringify({ asked: digest, draft: await draft(), isMade: false } satisfies Kept<Draft>),
  );
  const kept = JSON.parse(text) as Kept<Draft>;
  if (kept.asked !== digest) throw fixedError("idempotency_mismatch", "usual");
  if (!kept.isMade) {
    try {
      await make(kept.draft);
    } catch (error) {
      const isRefusal = error instanceof InferenceError && !unsure.includes(error.code);
      if (isFirst && isRefusal) await dropKept(redis, place).catch(() => undefined);
      throw error;
    }
    // Without this note a later repetition makes the change again, which changes nothing.
    await keepAnew(redis, place, JSON.stringify({ ...kept, isMade: true })).catch(() => undefined);
  }
  return { draft: kept.draft, isReplayed: !isFirst };
}

/**
 * The text of the first call under a key. Of calls at the same time one is the first.
 * @param draft makes the text of this call
 */
export async function firstText(
  redis: RedisClient,
  place: string,
  draft: () => Promise<string>,
): Promise<{ readonly text: string; readonly isFirst: boolean }> {
  const before = await askRedis(() => readKept(redis, place));
  if (before !== undefined) return { text: before, isFirst: false };
  const own = await draft();
  const text = await changeInRedis(() => keepFirst(redis, place, own));
  return { text, isFirst: text === own };
}

/** The name of a key among all keys of all callers. */
export function nameOf({ tenant, keyId }: RepeatingCaller, key: string): string {
  return digestOf([tenant, keyId, key]);
}

export function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("base64url");
}
