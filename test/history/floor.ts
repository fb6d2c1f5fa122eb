/** Reads from Redis what invariant I11 is about, key by key, once nothing moves any more. */
import type { Redis } from "ioredis";
import { GROUP } from "#shared/keys.js";
import type { DeadLetter, Floor } from "./facts.js";

/** Kinds that hold for ever by design; all other keys must have a TTL when nothing is queued. */
const lasting = new Set(["ready", "dead", "live", "{registry}"]);
const passing = new Set(["seq", "state", "out", "log", "reconciler"]);

export async function readFloor(redis: Redis): Promise<Floor> {
  const keys = await allKeys(redis);
  const ofKind = (kind: string) => keys.filter((key) => kindOf(key) === kind);
  const count = async (kind: string, size: (key: string) => Promise<number>) =>
    (await Promise.all(ofKind(kind).map(size))).reduce((sum, n) => sum + n, 0);

  const ttls = await Promise.all(keys.map((key) => redis.pttl(key)));
  const outcomes = await Promise.all(
    ofKind("out").map(async (key) => ({ key, ended: (await redis.hexists(key, "kind")) === 1 })),
  );
  const sequences = await Promise.all(
    ofKind("seq").map(async (key) => [labelOf(key), Number(await redis.hget(key, "done"))] as const),
  );
  return {
    readyEntries: await count("ready", (key) => redis.xlen(key)),
    pendingEntries: await count("ready", (key) => pending(redis, key)),
    waitKeys: ofKind("wait"),
    runsKeys: ofKind("runs"),
    keysWithoutTtl: keys.filter((key, i) => passing.has(kindOf(key)) && ttls[i] === -1),
    strangeKeys: keys.filter((key) => ![...lasting, ...passing, "wait", "runs"].includes(kindOf(key))),
    dead: (await Promise.all(ofKind("dead").map((key) => deadLetters(redis, key)))).flat(),
    outcomeRecords: outcomes.length,
    openOutcomes: outcomes.filter(({ ended }) => !ended).map(({ key }) => key),
    sequences: new Map(sequences),
  };
}

/** Reads until the floor is at rest or the time is up: hand-backs and reclaims may still be under way. */
export async function settledFloor(redis: Redis, withinMs: number): Promise<Floor> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const floor = await readFloor(redis);
    const moving = floor.readyEntries + floor.pendingEntries + floor.waitKeys.length + floor.openOutcomes.length;
    if (moving === 0 || performance.now() > giveUpAt) return floor;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export async function allKeys(redis: Redis, match = "*"): Promise<string[]> {
  const found = new Set<string>();
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", match, "COUNT", 1_000);
    for (const key of keys) found.add(key);
    cursor = next;
  } while (cursor !== "0");
  return [...found].sort();
}

/** The label is the encoded id, which holds no `:`; it comes last in the key. */
export function labelOf(keyOrName: string): string {
  return keyOrName.slice(keyOrName.lastIndexOf(":") + 1);
}

function kindOf(key: string): string {
  return key.slice(0, key.indexOf(":"));
}

async function pending(redis: Redis, key: string): Promise<number> {
  const groups = (await redis.xinfo("GROUPS", key)) as unknown[][];
  const ours = groups.find((group) => group[group.indexOf("name") + 1] === GROUP);
  return ours === undefined ? 0 : Number(ours[ours.indexOf("pending") + 1]);
}

async function deadLetters(redis: Redis, key: string): Promise<DeadLetter[]> {
  return (await redis.xrange(key, "-", "+")).map(([, fields]) => {
    const field = (name: string) => fields[fields.indexOf(name) + 1] ?? "";
    return {
      sequence: labelOf(field("sequence")),
      step: Number(field("step")),
      reason: field("reason"),
      runs: Number(field("runs")),
    };
  });
}
