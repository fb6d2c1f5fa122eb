/** What a key may give to other keys: nothing that it lacks itself. */
import { InferenceError } from "#shared/errors.js";
import { covers } from "./globs.js";
import { isWithin } from "./limits.js";
import type { Owner } from "./owner.js";
import type { KeyRecord } from "./records.js";
import { requireScope } from "./scopes.js";

/** What one key may give to another. */
export type Gift = Pick<KeyRecord, "scopes" | "models" | "limits">;

/** @throws InferenceError `insufficient_scope` */
export function needGift(giver: Pick<Owner, "scopes" | "models" | "key">, gift: Gift): void {
  for (const scope of gift.scopes) requireScope(giver, scope);
  if (!covers(giver.models, gift.models)) {
    const text = "the API key may not use all of these models; a key that excludes models passes its exclusions on";
    throw new InferenceError("insufficient_scope", text);
  }
  if (giver.scopes.has("operator") || isWithin(gift.limits, giver.key?.limits ?? {})) return;
  throw new InferenceError("insufficient_scope", "the API key cannot give higher limits than its own");
}
