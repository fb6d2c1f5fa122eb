/**
 * Whose usage a request counts as: a member of its frame's metadata, because the worker tells the
 * script that writes the outcome.
 */
import type { FrameMeta } from "../frame.js";

/** Stands for the key of work that no client sends. */
export const NO_KEY = "-";

/** @param key id of a key, or `NO_KEY`; undefined if nobody counts the usage */
export function usageMeta(key: string | undefined): FrameMeta {
  return key === undefined ? {} : { usage: key };
}

/** @returns undefined if nobody counts the usage */
export function usageKeyOf(meta: FrameMeta): string | undefined {
  const { usage } = meta;
  return typeof usage === "string" ? usage : undefined;
}
