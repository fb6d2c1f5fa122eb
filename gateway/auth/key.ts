/**
 * The form of API keys: `bt_`, an id, `_`, a secret, and a checksum. The checksum lets a gateway
 * refuse rubbish without a look-up, and lets scanners recognise keys that leaked. Redis and files
 * hold an HMAC of a key under the pepper, never the key. A slow hash would protect nothing, because
 * the secret has 190 random bits.
 */
import { createHmac, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const form = /^bt_([0-9a-z]{12})_[0-9A-Za-z]{38}$/;
const ID_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID_LENGTH = 12;
const SECRET_LENGTH = 32;
const CHECKSUM_LENGTH = 6;

/** How every key begins. */
export const KEY_PREFIX = "bt_";

export interface NewKey {
  readonly id: string;
  /** The whole key, which only its owner keeps. */
  readonly text: string;
}

/** @param id of a key that is there already, for a guess at its secret */
export function newKey(id = randomDigits(ID_DIGITS, ID_LENGTH)): NewKey {
  const unchecked = `${KEY_PREFIX}${id}_${randomDigits(DIGITS, SECRET_LENGTH)}`;
  return { id, text: unchecked + checksum(unchecked) };
}

/** @returns the key's id; undefined if the text is no key */
export function keyId(text: string): string | undefined {
  const id = form.exec(text)?.[1];
  return id !== undefined && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH))) ? id : undefined;
}

/** The last characters of a key, by which its owner knows it again. */
export function last4(text: string): string {
  return text.slice(-4);
}

/** @param pepper 32 bytes that only gateways and the program `keys` have */
export function digestOf(text: string, pepper: Buffer): Buffer {
  return createHmac("sha256", pepper).update(text).digest();
}

/** CRC-32 of all characters before it, in base 62. */
function checksum(text: string): string {
  let left = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = (DIGITS[left % DIGITS.length] ?? "") + digits;
    left = Math.floor(left / DIGITS.length);
  }
  return digits;
}

function randomDigits(digits: string, count: number): string {
  return Array.from({ length: count }, () => digits[randomInt(digits.length)]).join("");
}
