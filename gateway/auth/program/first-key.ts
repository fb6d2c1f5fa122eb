/**
 * The first key of a deployment, with which its operator makes all others. The key is in a file of
 * the operator's, so that a second call shows the same key.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { timingSafeEqual } from "node:crypto";
import { InferenceError } from "#shared/errors.js";
import { UnusableError } from "#shared/exit.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { digestOf, keyId } from "../key.js";
import type { Keys, MadeKey } from "../keys.js";
import { stateOf } from "../key-view.js";
import { digestIn } from "../owner/records.js";
import { scopes } from "../owner/scopes.js";

export interface FirstKey extends MadeKey {
  /** Whether this call has made the key. */
  readonly isNew: boolean;
}

/**
 * The key in the file. Makes another if the file is not there, or if Redis does not know the key.
 * @throws UnusableError if the key is good no longer, because somebody has meant that
 */
export async function firstKey(file: string, keys: Keys, peppers: readonly Buffer[]): Promise<FirstKey> {
  const text = contentOf(file);
  const record = text === "" ? undefined : await find(text, file, keys);
  if (record === undefined) {
    const terms = { name: "operator", scopes, models: ["*"], livesMs: undefined, createdBy: undefined };
    const made = await keys.make({ tenant: DEFAULT_TENANT, ...terms });
    writeFileSync(file, `${made.text}\n`, { mode: 0o600 });
    return { ...made, isNew: true };
  }
  const another = "put another operator's key into the file, or remove it to have a new one made";
  const state = stateOf(record, await keys.now());
  if (state !== "active") throw new UnusableError(`The key in ${file} is ${state}: ${another}.`);
  if (!peppers.some((pepper) => timingSafeEqual(digestOf(text, pepper), digestIn(record)))) {
    throw new UnusableError(`The key in ${file} was made under another pepper (BATON_AUTH_SECRET_FILE): ${another}.`);
  }
  return { record, text, isNew: false };
}

/** @returns undefined if Redis has no such key */
async function find(text: string, file: string, keys: Keys): Promise<MadeKey["record"] | undefined> {
  const id = keyId(text);
  if (id === undefined) throw new UnusableError(`${file} holds no key: remove the file to have a key.`);
  try {
    return await keys.find(id);
  } catch (error) {
    // Any other failure must not make another key.
    if (error instanceof InferenceError && error.code === "unknown_key") return undefined;
    throw error;
  }
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw new UnusableError(`${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}.`);
  }
}
