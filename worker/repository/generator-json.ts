/** JSON files of a generator's folder: bounded, inside the folder, and of the expected shape, or a sentence that says what is wrong with which file. */
import type { z } from "zod";
import { readInside } from "./inside.js";
import { LoadError } from "./load-error.js";

/** @returns undefined when there is no such file. @throws LoadError */
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

/** @returns undefined when there is no such file. @throws LoadError */
export async function readText(directory: string, name: string, limit: number): Promise<string | undefined> {
  const bytes = await readInside(directory, name, limit);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new LoadError(`'${name}' is not UTF-8`, { cause });
  }
}

function firstIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined) return "not what was expected";
  const text = `${issue.message.slice(0, 1).toLowerCase()}${issue.message.slice(1)}`;
  return issue.path.length === 0 ? text : `${issue.path.join(".")}: ${text}`;
}
