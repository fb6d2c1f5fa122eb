/**
 * The secrets that sign the messages of webhooks. A client reads a secret when Baton makes it, and
 * never again. With `BATON_SECRETS_KEY`, Redis holds the secrets encrypted, each bound to its
 * webhook. So an attacker who reads or changes Redis's data can neither sign messages nor move a
 * secret to another webhook.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const PREFIX = "whsec_";
/** Length of the secrets that Baton makes. */
const SECRET_BYTES = 32;
/** The bounds of Standard Webhooks. */
const BOUNDS = { least: 24, most: 64 };
const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function newSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString("base64")}`;
}

/** Whether a client may choose this secret: `whsec_` and the base64 of 24 to 64 bytes. */
export function isSecret(text: string): boolean {
  if (!text.startsWith(PREFIX)) return false;
  const encoded = text.slice(PREFIX.length);
  const bytes = Buffer.from(encoded, "base64");
  return bytes.length >= BOUNDS.least && bytes.length <= BOUNDS.most && bytes.toString("base64") === encoded;
}

/**
 * Reads the key: 32 bytes, in base64 or as hexadecimal digits.
 * @returns undefined for anything else
 */
export function parseKey(text: string): Buffer | undefined {
  const isHex = new RegExp(`^[0-9a-f]{${2 * KEY_BYTES}}$`, "i").test(text);
  const key = Buffer.from(text, isHex ? "hex" : "base64");
  return key.length === KEY_BYTES && (isHex || key.toString("base64") === text) ? key : undefined;
}

/** Thrown if the key of this process cannot open a secret. */
export class SealedError extends Error {
  override readonly name = "SealedError";
}

export class SecretBox {
  readonly #key: Buffer | undefined;
  /** Identifies the key, and reveals nothing about it. */
  readonly #name: string;

  /** @param key undefined if Redis holds the secrets unencrypted */
  constructor(key: Buffer | undefined) {
    this.#key = key;
    this.#name = key === undefined ? "" : createHash("sha256").update(key).digest("hex").slice(0, 8);
  }

  /** @param owner the name of the secret's owner; `open` needs the same name */
  seal(secret: string, owner: string): string {
    if (this.#key === undefined) return `open:${secret}`;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(owner));
    const sealed = Buffer.concat([nonce, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `sealed:${this.#name}:${sealed.toString("base64")}`;
  }

  /** @throws SealedError if this process has another key, or the text has changed */
  open(text: string, owner: string): string {
    if (text.startsWith("open:")) return text.slice("open:".length);
    const [kind, name, encoded = ""] = text.split(":");
    if (kind !== "sealed") throw new SealedError("this is no secret as it is kept");
    if (this.#key === undefined || name !== this.#name) {
      throw new SealedError("the secret was encrypted with another key: BATON_SECRETS_KEY must be the same everywhere");
    }
    const sealed = Buffer.from(encoded, "base64");
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, sealed.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(owner)).setAuthTag(sealed.subarray(-TAG_BYTES));
      const opened = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString("utf8");
    } catch (cause) {
      throw new SealedError("the secret was changed since it was encrypted", { cause });
    }
  }
}
