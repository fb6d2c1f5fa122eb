/**
 * Files of a model directory, refused where they could be anything else: a link out of the directory, a device, or a second name of some
 * other file. ONNX Runtime itself reads external data through a hard link, so the link count is ours to check (spec/reliability.md A54).
 */
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { LoadError } from "./load-error.js";

/** A model is a handful of files; a tree beyond this is not one. */
const MAX_TREE_ENTRIES = 10_000;

/**
 * @param root a directory, resolved. @param name relative to it.
 * @returns the resolved path and whether it is a directory; undefined when nothing is there.
 */
export async function resolveInside(
  root: string,
  name: string,
): Promise<{ readonly path: string; readonly directory: boolean } | undefined> {
  let path: string;
  try {
    path = await realpath(join(root, name));
  } catch (cause) {
    if (isMissing(cause)) return undefined;
    throw new LoadError(`'${name}' cannot be read (${codeOf(cause)})`, { cause });
  }
  if (!path.startsWith(root + sep)) throw new LoadError(`'${name}' leads out of the directory it is in`);
  const { nlink, ...stat } = await lstat(path).then((found) => ({
    nlink: found.nlink,
    file: found.isFile(),
    directory: found.isDirectory(),
  }));
  if (stat.directory) return { path, directory: true };
  if (!stat.file) throw new LoadError(`'${name}' is not a regular file`);
  if (nlink !== 1) {
    const why = "a file with more than one name may be someone else's; copy it instead of linking it";
    throw new LoadError(`'${name}' has ${nlink} hard links: ${why}`);
  }
  return { path, directory: false };
}

/** @returns undefined when there is no such file. @throws LoadError when it is larger than `limit` bytes, or not a file to be read. */
export async function readInside(root: string, name: string, limit: number): Promise<Buffer | undefined> {
  const found = await resolveInside(root, name);
  if (found === undefined) return undefined;
  if (found.directory) throw new LoadError(`'${name}' is not a regular file`);
  const file = await open(found.path, "r").catch((cause: unknown) => {
    throw new LoadError(`'${name}' cannot be read (${codeOf(cause)})`, { cause });
  });
  try {
    const { size } = await file.stat();
    if (size > limit) throw new LoadError(`'${name}' is larger than ${limit} bytes (${size})`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Checks every file under a directory, because a model may read any of them as its external data. @throws LoadError */
export async function checkTree(root: string, directory: string): Promise<void> {
  const entries = await readdir(join(root, directory), { recursive: true });
  if (entries.length > MAX_TREE_ENTRIES)
    throw new LoadError(`'${directory}' holds more than ${MAX_TREE_ENTRIES} files`);
  for (const entry of entries) await resolveInside(root, join(directory, entry));
}

function isMissing(cause: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(codeOf(cause));
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
}
