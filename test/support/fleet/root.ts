/**
 * The checkout's root. It is found from this file, whether it runs from source (vitest) or compiled
 * under dist (`npm run chaos`).
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
