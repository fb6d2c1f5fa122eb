/** Secrets in files: makes them, and reads them. */
import { randomBytes } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { UnusableError } from "./exit.js";

/** Length of a secret in bytes. */
export const SECRET_BYTES = 32;

/** The bits of a file's mode that let its group and others write. */
const OTHERS_WRITE = 0o022;

/**
 * The text of a file that is no secret.
 * @param setting the setting that names the file
 * @throws UnusableError if the file cannot be read
 */
export function readPublicFile(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw cannotBeRead(setting, error);
  }
}

/**
 * The text of a file with a secret.
 * @param setting the setting that names the file
 * @throws UnusableError if the file cannot be read, or if other users may write it
 */
export function readSecretFile(setting: string, file: string): string {
  const text = readPublicFile(setting, file);
  let mode: number;
  try {
    ({ mode } = statSync(file));
  } catch (error) {
    throw cannotBeRead(setting, error);
  }
  if ((mode & OTHERS_WRITE) !== 0) throw new UnusableError(`${setting} names a file that other users may write.`);
  return text;
}

/**
 * The lines of a file with a secret, without empty lines.
 * @throws UnusableError as `readSecretFile` does, and for a file without a line
 */
export function readSecretLines(setting: string, file: string): string[] {
  const lines = readSecretFile(setting, file)
    .split(/\r?\n/)
    .filter((line) => line !== "");
  if (lines.length === 0) throw new UnusableError(`${setting} names an empty file.`);
  return lines;
}

function cannotBeRead(setting: string, error: unknown): UnusableError {
  return new UnusableError(`${setting} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}.`);
}

/** Makes a file with a secret of `SECRET_BYTES` in base64, unless the file is there. */
export function makeSecret(file: string): void {
  if (existsSync(file)) return;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Whole or not at all, also if this process dies meanwhile.
  const whole = `${file}.${process.pid}`;
  writeFileSync(whole, `${randomBytes(SECRET_BYTES).toString("base64")}\n`, { mode: 0o600 });
  try {
    linkSync(whole, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(whole);
  }
}
