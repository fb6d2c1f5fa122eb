/**
 * The hash slots of a Redis Cluster, and what they mean for calls that name several keys: a Cluster
 * takes such a call only where all of its keys lie in one slot.
 */
import type { RedisClient } from "./connect.js";

const SLOTS = 16_384;

/** CRC-16/XMODEM of every possible high byte: polynomial 0x1021, initial value 0. */
const TABLE = Uint16Array.from({ length: 256 }, (_, high) => {
  let crc = high << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/** The slot of a key, from 0 to 16 383. Only the hash tag counts, where the key has one. */
export function slotOf(key: string): number {
  return crcOf(Buffer.from(hashed(key))) % SLOTS;
}

/**
 * Makes a function that tells the slot of the tag `stem` followed by digits. Callers search for a
 * tag in many slots, so the stem is hashed only once.
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

/** What is between the first `{` and the next `}`, unless that is nothing. */
function hashed(key: string): string {
  const open = key.indexOf("{");
  const close = key.indexOf("}", open + 1);
  return open === -1 || close === -1 || close === open + 1 ? key : key.slice(open + 1, close);
}

/**
 * A key that is never written, in the slot of this one. A call that names it, too, is refused while
 * the slot is being moved to another master (ASK, TRYAGAIN), since then not all of its keys are at
 * either of them.
 */
export function absentKey(key: string): string {
  return `${ABSENT}${hashed(key)}}`;
}

/** What every absent key begins with, and no other one. */
export const ABSENT = "absent:{";

/**
 * Divides items so that each group can go in one call: by slot in a Cluster; otherwise all
 * together. The order within a group is that of the items.
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
