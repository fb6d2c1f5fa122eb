/**
 * The hash slots of a Redis Cluster, and calls with several keys: a Cluster accepts such a call
 * only if all its keys lie in one slot.
 */
import type { RedisClient } from "./connect.js";

const SLOTS = 16_384;

/** CRC-16/XMODEM of every possible high byte: polynomial 0x1021, initial value 0. */
const TABLE = Uint16Array.from({ length: 256 }, (_, high) => {
  let crc = high << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/** The slot of a key, from 0 to 16 383. If the key has a hash tag, only the tag counts. */
export function slotOf(key: string): number {
  return crcOf(Buffer.from(hashed(key))) % SLOTS;
}

/**
 * Makes a function that computes the slot of the tag `stem` plus digits. Callers search for a tag
 * in many slots, so the stem is hashed only once.
 */
export function slotsOfTags(stem: string): (digits: string) => number {
  const begun = crcOf(Buffer.from(stem));
  return (digits) => {
    let crc = begun;
    for (let i = 0; i < digits.length; i++) crc = crcWith(crc, digits.charCodeAt(i));
    return crc % SLOTS;
  };
}

function crcOf(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = crcWith(crc, byte);
  return crc;
}

function crcWith(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0);
}

/** The text between the first `{` and the next `}`, unless that is empty. */
function hashed(key: string): string {
  const open = key.indexOf("{");
  const close = key.indexOf("}", open + 1);
  return open === -1 || close === -1 || close === open + 1 ? key : key.slice(open + 1, close);
}

/**
 * A key that is never written, in the slot of the given key. While a slot moves to another master,
 * neither master has all keys of a call that also names this key. So both refuse the call (ASK,
 * TRYAGAIN).
 */
export function absentKey(key: string): string {
  return `${ABSENT}${hashed(key)}}`;
}

/** The beginning of every absent key, and of no other key. */
export const ABSENT = "absent:{";

/**
 * Divides items into groups, a group per call: by slot in a Cluster, otherwise all together. Keeps
 * the order of the items.
 */
export function callGroups<Item>(
  redis: Pick<RedisClient, "isCluster">,
  items: readonly Item[],
  keyOf: (item: Item) => string,
): Item[][] {
  if (!redis.isCluster) return items.length === 0 ? [] : [[...items]];
  const groups = new Map<number, Item[]>();
  for (const item of items) {
    const slot = slotOf(keyOf(item));
    const group = groups.get(slot);
    if (group === undefined) groups.set(slot, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}
