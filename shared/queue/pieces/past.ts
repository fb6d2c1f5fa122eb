/** Why a step finds no sequence: the reasons that past.lua keeps. */
import type { RefusalReason } from "../../errors.js";

/** The answers of the scripts. */
export const pastReasons = [
  "never_started",
  "expired",
  "ended",
  "deleted",
  "cancelled",
] as const satisfies readonly RefusalReason[];

export type PastReason = (typeof pastReasons)[number];
