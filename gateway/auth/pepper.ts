/**
 * The pepper: the secret under which Redis holds API keys. Whoever has it and the records in Redis
 * could try keys; without it, the records tell nothing.
 */
import { UnusableError } from "#shared/exit.js";
import { readSecretLines, SECRET_BYTES } from "#shared/secret-file.js";

/**
 * Reads the pepper and, if the file has two lines, the former pepper.
 * @throws UnusableError
 */
export function readPeppers(file: string): Buffer[] {
  const lines = readSecretLines("BATON_AUTH_SECRET_FILE", file);
  const peppers = lines.map((line) => Buffer.from(line, "base64"));
  const isRight = peppers.every(
    (pepper, i) => pepper.length === SECRET_BYTES && pepper.toString("base64") === lines[i],
  );
  if (isRight && (peppers.length === 1 || peppers.length === 2)) return peppers;
  throw new UnusableError(
    "BATON_AUTH_SECRET_FILE must have 32 bytes in base64 on its first line, and at most a former pepper on its second.",
  );
}
