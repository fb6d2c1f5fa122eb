/** Why a step finds no sequence that it could be a step of, as past.lua keeps it. */
import type { RefusalReason } from "../errors.js";

/** What a script may answer. */
export const pastReasons = [
  "never_started",
  "expired",
  "ended",
  "deleted",
  "cancelled",
] as const satisfies readonly RefusalReason[];

export type PastReason = (typeof pastReasons)[number];
