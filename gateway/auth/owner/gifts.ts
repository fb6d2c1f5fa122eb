/** What a key may give to other keys: nothing that it lacks itself. */
import { InferenceError } from "#shared/errors.js";
import { covers } from "./globs.js";
import type { Owner } from "./owner.js";
import type { KeyRecord } from "./records.js";
import { requireScope } from "./scopes.js";

/** @throws InferenceError `insufficient_scope` */
export function needGift(giver: Pick<Owner, "scopes" | "models">, gift: Pick<KeyRecord, "scopes" | "models">): void {
  for (const scope of gift.scopes) requireScope(giver, scope);
  if (covers(giver.models, gift.models)) return;
  const text = "the API key may not use all of these models; a key that excludes models passes its exclusions on";
  throw new InferenceError("insufficient_scope", text);
}
