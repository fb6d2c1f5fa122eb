/**
 * Looks at the files of model repositories, so that a worker sees whether they have changed. A look
 * reads names, sizes and times, and no file.
 */
import { createHash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { delay } from "#shared/retry.js";

/** The most folders one inside the other that a look reads. A model has three at most. */
const MOST_DEPTH = 8;

/**
 * @param repositories the folders of models
 * @param models the names of models to look at; undefined for all
 * @returns a text that changes with the files
 * @throws Error if a folder of models cannot be listed
 */
export async function lookAt(repositories: readonly string[], models?: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const repository of repositories) {
    for (const name of (await readdir(repository)).sort()) {
      if (name.startsWith(".") || models?.includes(name) === false) continue;
      for await (const line of filesBelow(repository, name, 0)) hash.update(line);
    }
  }
  return hash.digest("hex");
}

/** Follows links, as the loading of a model does. */
async function* filesBelow(folder: string, path: string, depth: number): AsyncGenerator<string> {
  const found = await stat(join(folder, path)).catch(() => undefined);
  if (found === undefined) return yield `${path}\n`;
  if (!found.isDirectory()) return yield `${path} ${found.size} ${found.mtimeMs}\n`;
  yield `${path}/\n`;
  if (depth === MOST_DEPTH) return;
  const names = await readdir(join(folder, path)).catch((): string[] => []);
  for (const name of names.sort()) yield* filesBelow(folder, join(path, name), depth + 1);
}

export interface RepositoryWatch {
  /** The look before the worker loaded its models. */
  readonly loaded: string;
  readonly look: () => Promise<string>;
  readonly everyMs: number;
  readonly onChange: () => void;
}

/**
 * Looks until `signal` aborts. A change counts if two looks in a row agree, because a model may be
 * copied for longer than the time between two looks.
 */
export async function watchRepository(
  { loaded, look, everyMs, onChange }: RepositoryWatch,
  signal: AbortSignal,
): Promise<void> {
  let told = loaded;
  let last = loaded;
  while (!signal.aborted) {
    await delay(everyMs, signal);
    const seen = await look().catch(() => undefined);
    // A folder that cannot be listed may be a volume that is away for a moment.
    if (seen === undefined || signal.aborted) continue;
    if (seen === last && seen !== told) {
      told = seen;
      onChange();
    }
    last = seen;
  }
}
