/**
 * The pepper: the secret under which Redis holds API keys. Whoever has it and the records in Redis
 * could try keys; without it, the records tell nothing.
 */
import { randomBytes } from "node:crypto";
import { existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { UnusableError } from "#shared/exit.js";

/** Length of a pepper in bytes. */
const PEPPER_BYTES = 32;

/** The bits of a file's mode that let its group and others write. */
const OTHERS_WRITE = 0o022;

/** Makes the file with a pepper, unless it is there. */
export function makePepper(file: string): void {
  if (existsSync(file)) return;
  // Whole or not at all, also if this process dies meanwhile.
  const whole = `${file}.${process.pid}`;
  writeFileSync(whole, `${randomBytes(PEPPER_BYTES).toString("base64")}\n`, { mode: 0o600 });
  try {
    linkSync(whole, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(whole);
  }
}

/**
 * Reads the pepper and, if the file has two lines, the former pepper.
 * @throws UnusableError
 */
export function readPeppers(file: string): Buffer[] {
  let text: string;
  let mode: number;
  try {
    text = readFileSync(file, "utf8");
    ({ mode } = statSync(file));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new UnusableError(`BATON_AUTH_SECRET_FILE cannot be read: ${why}.`);
  }
  if ((mode & OTHERS_WRITE) !== 0)
    throw new UnusableError("BATON_AUTH_SECRET_FILE names a file that other users may write.");
  const lines = text.split(/\r?\n/).filter((line) => line !== "");
  const peppers = lines.map((line) => Buffer.from(line, "base64"));
  const isRight = peppers.every(
    (pepper, i) => pepper.length === PEPPER_BYTES && pepper.toString("base64") === lines[i],
  );
  if (isRight && (peppers.length === 1 || peppers.length === 2)) return peppers;
  throw new UnusableError(
    "BATON_AUTH_SECRET_FILE must have 32 bytes in base64 on its first line, and at most a former pepper on its second.",
  );
}
