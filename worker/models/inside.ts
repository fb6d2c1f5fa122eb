/**
 * Reads files inside a model's directory. Refuses a link out of the directory, a device, and a file
 * with a second name. ONNX Runtime itself reads external data through a hard link, so this file
 * checks the link count.
 */
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import type { z } from "zod";
import { LoadError } from "../thread/load-error.js";

/** Most files of a model. A model has a handful, so a larger tree is not a model. */
const MAX_TREE_ENTRIES = 10_000;

/**
 * @param root the resolved path of a directory
 * @param name a path relative to `root`
 * @returns the resolved path and whether it is a directory; undefined if there is none
 * @throws LoadError if the path leads out of `root`, or is neither a directory nor a regular file
 *   with one name
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

/**
 * @param limit most bytes of the file
 * @returns undefined if there is no such file
 * @throws LoadError if the file is larger, or cannot be read
 */
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

/**
 * Reads a JSON file of a known shape.
 * @returns undefined if there is no such file
 * @throws LoadError that names the file and the fault
 */
export async function readJson<T>(
  directory: string,
  name: string,
  schema: z.ZodType<T>,
  limit: number,
): Promise<T | undefined> {
  const text = await readText(directory, name, limit);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new LoadError(`'${name}' is not JSON`, { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new LoadError(`'${name}': ${firstIssue(parsed.error)}`);
}

/**
 * Reads a UTF-8 file.
 * @returns undefined if there is no such file
 * @throws LoadError
 */
export async function readText(directory: string, name: string, limit: number): Promise<string | undefined> {
  const bytes = await readInside(directory, name, limit);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new LoadError(`'${name}' is not UTF-8`, { cause });
  }
}

/**
 * Checks every file under a directory, because a model may read any of them as its external data.
 * @throws LoadError
 */
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

function firstIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined) return "not what was expected";
  const text = `${issue.message.slice(0, 1).toLowerCase()}${issue.message.slice(1)}`;
  return issue.path.length === 0 ? text : `${issue.path.join(".")}: ${text}`;
}
