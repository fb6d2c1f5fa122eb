/**
 * Looks at the files of model repositories, so that a worker sees whether they have changed. A look
 * reads names, sizes and times, and no file.
 */
import { createHash } from "node:crypto";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { delay } from "#shared/retry.js";

/** A look at models of the repositories. */
export interface Looked {
  /** The names of the models; undefined for all. */
  readonly models: readonly string[] | undefined;
  /** Changes with the files. */
  readonly files: string;
}

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
    const root = await realpath(repository);
    for (const name of (await readdir(root)).sort()) {
      if (name.startsWith(".") || models?.includes(name) === false) continue;
      for await (const line of filesBelow(root, name, new Set())) hash.update(line);
    }
  }
  return hash.digest("hex");
}

/**
 * Follows links inside the repository, as the loading of a model does, and into each folder once.
 * The time of the last change of any kind tells a file from another of its size and age.
 *
 * @param root the resolved path of the repository
 * @param read the resolved folders that were read already
 */
async function* filesBelow(root: string, path: string, read: Set<string>, depth = 0): AsyncGenerator<string> {
  const real = await realpath(join(root, path)).catch(() => undefined);
  if (real?.startsWith(root + sep) !== true) return yield `${path}\n`;
  const found = await stat(real).catch(() => undefined);
  const line = `${path} ${relative(root, real)}`;
  if (found?.isDirectory() !== true) return yield `${line} ${found?.size} ${found?.mtimeMs} ${found?.ctimeMs}\n`;
  yield `${line}/\n`;
  if (depth === MOST_DEPTH || read.has(real)) return;
  read.add(real);
  const names = await readdir(real).catch((): string[] => []);
  for (const name of names.sort()) yield* filesBelow(root, join(path, name), read, depth + 1);
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
