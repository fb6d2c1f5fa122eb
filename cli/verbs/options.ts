/** Reads the arguments of verbs: numbers, and files or standard input. */
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { InvalidArgumentError } from "commander";
import { exitCodes, Failure } from "../terminal/exit.js";

/** @throws InvalidArgumentError, which commander turns into a message that names the option */
export function integer(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (value >= 1) return value;
  throw new InvalidArgumentError("It must be an integer of at least 1.");
}

/** @throws InvalidArgumentError */
export function number(text: string): number {
  const value = /^[-+.\d]/.test(text) ? Number(text) : Number.NaN;
  if (Number.isFinite(value)) return value;
  throw new InvalidArgumentError("It must be a number.");
}

/**
 * Reads a whole file.
 * @param path `-` for standard input
 * @throws Failure if the file is unreadable
 */
export async function readInput(path: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await (path === "-" ? standardInput(signal) : readFile(path, { signal }));
  } catch (cause) {
    if (signal.aborted) throw cause;
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new Failure(exitCodes.usage, `cannot read ${path === "-" ? "standard input" : path} (${why})`, { cause });
  }
}

async function standardInput(signal: AbortSignal): Promise<Buffer> {
  const stop = () => process.stdin.destroy(new Error("interrupted"));
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await buffer(process.stdin);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
