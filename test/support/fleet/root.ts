/**
 * The checkout's root. Searched upwards from this file, because this file runs both from source
 * (vitest) and compiled under dist (`npm run chaos`).
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

function findRoot(from: string): string {
  if (existsSync(join(from, "package.json"))) return from;
  const parent = dirname(from);
  if (parent === from) throw new Error("no package.json above the test setup");
  return findRoot(parent);
}

export const root = findRoot(import.meta.dirname);
