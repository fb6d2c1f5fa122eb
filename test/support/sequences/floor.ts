/** Reads from Redis, key by key, whether anything is left over at rest. */
import type { Redis } from "ioredis";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { GROUP } from "#shared/queue/keys.js";
import { parseFacts } from "#shared/queue/pieces/sequence.js";
import { readUntil } from "../until.js";
import type { DeadLetter, Floor } from "./facts.js";

/**
 * Kinds of keys that stay for ever by design. All other keys must have a TTL when no step is
 * queued, or a time of expiry if the key holds sequences.
 */
const lasting = new Set(["ready", "live", "load", "kept", "aside", "{registry}"]);
const passing = new Set([
  "seqs",
  "past",
  "did",
  "state",
  "out",
  "log",
  "reconciler",
  "calls",
  "unpublished",
  "recount",
  "dead",
  // The checkpoint of a request that runs again and again, whose worker died behind the commit.
  "run",
  "cached",
]);
/**
 * Kinds of counters, parked requests and steps behind another step. No such key exists when no step
 * is queued.
 */
const queuing = ["wait", "open", "queue", "parked", "window"];

/** @param servers connections to servers that together hold every key once */
export async function readFloor(servers: readonly Redis[]): Promise<Floor> {
  const floors = await Promise.all(servers.map(readServer));
  const sum = (of: (floor: Floor) => number) => floors.reduce((total, floor) => total + of(floor), 0);
  return {
    readyEntries: sum(({ readyEntries }) => readyEntries),
    pendingEntries: sum(({ pendingEntries }) => pendingEntries),
    waitKeys: floors.flatMap(({ waitKeys }) => waitKeys),
    runsKeys: floors.flatMap(({ runsKeys }) => runsKeys),
    keysWithoutTtl: floors.flatMap(({ keysWithoutTtl }) => keysWithoutTtl),
    strangeKeys: floors.flatMap(({ strangeKeys }) => strangeKeys),
    dead: floors.flatMap(({ dead }) => dead),
    outcomeRecords: sum(({ outcomeRecords }) => outcomeRecords),
    openOutcomes: floors.flatMap(({ openOutcomes }) => openOutcomes),
    sequences: new Map(floors.flatMap(({ sequences }) => [...sequences])),
  };
}

async function readServer(redis: Redis): Promise<Floor> {
  const keys = await allKeys(redis);
  const ofKind = (kind: string) => keys.filter((key) => kindOf(key) === kind);
  const count = async (kind: string, size: (key: string) => Promise<number>) =>
    (await Promise.all(ofKind(kind).map(size))).reduce((sum, n) => sum + n, 0);

  const ends = await Promise.all(keys.map((key) => hasEnd(redis, key)));
  const outcomes = await Promise.all(ofKind("out").map(async (key) => ({ key, ended: await hasEnded(redis, key) })));
  const all = (await Promise.all(ofKind("seqs").map((key) => redis.hgetall(key)))).flatMap(Object.entries<string>);
  const sequences = all.map(([name, text]) => [labelOf(name), parseFacts(text).done] as const);
  return {
    readyEntries: await count("ready", (key) => redis.xlen(key)),
    pendingEntries: await count("ready", (key) => pending(redis, key)),
    waitKeys: queuing.flatMap(ofKind),
    runsKeys: ofKind("runs"),
    keysWithoutTtl: keys.filter((key, i) => passing.has(kindOf(key)) && ends[i] === false),
    strangeKeys: keys.filter((key) => ![...lasting, ...passing, ...queuing, "runs"].includes(kindOf(key))),
    dead: (await Promise.all(ofKind("dead").map((key) => deadLetters(redis, key)))).flat(),
    outcomeRecords: outcomes.length,
    openOutcomes: outcomes.filter(({ ended }) => !ended).map(({ key }) => key),
    sequences: new Map(sequences),
  };
}

/** Whether the key has an end: its own TTL, or an expiry of every sequence in the key. */
async function hasEnd(redis: Redis, key: string): Promise<boolean> {
  if (kindOf(key) !== "seqs") return (await redis.pttl(key)) !== -1;
  const names = await redis.hkeys(key);
  const scores = await Promise.all(names.map((name) => redis.zscore(`live:${key.slice("seqs:".length)}`, name)));
  const unlisted = names.filter((_, i) => scores[i] === null);
  // A sequence that a script removed meanwhile does not count.
  const left = await Promise.all(unlisted.map((name) => redis.hexists(key, name)));
  return scores.every((score) => score === null || Number.isFinite(Number(score))) && !left.includes(1);
}

/** The record of a brief request is a string, and exists only after the request has ended. */
async function hasEnded(redis: Redis, key: string): Promise<boolean> {
  return (await redis.type(key)) === "string" || (await redis.hexists(key, "kind")) === 1;
}

/**
 * Reads until Redis is at rest or the time is up, because workers may still hand steps back or
 * reclaim steps.
 */
export async function settledFloor(servers: readonly Redis[], withinMs: number): Promise<Floor> {
  // Looks at every key of ten thousand streams keep Redis so busy on a loaded machine that workers
  // take it for away, and then end no stream without a reader. So these looks begin when nothing is
  // open any more.
  const open = async () => (await Promise.all(servers.map((one) => allKeys(one, "open:*")))).flat();
  await readUntil(open, (keys) => keys.length === 0, { patienceMs: withinMs });
  return readUntil(() => readFloor(servers), isSettled, { patienceMs: withinMs, everyMs: 100 });
}

export function isSettled({ readyEntries, pendingEntries, waitKeys, openOutcomes }: Floor): boolean {
  return readyEntries + pendingEntries + waitKeys.length + openOutcomes.length === 0;
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

/**
 * The label of the sequence whose name, `tenant:id`, comes last in the key. Neither part has a `:`.
 */
export function labelOf(keyOrName: string): string {
  const [id = "", tenant = DEFAULT_TENANT] = keyOrName.split(":").reverse();
  return sequenceLabel(tenant, id);
}

/**
 * A sequence's name in histories: its encoded id, with its tenant unless that is the default
 * tenant.
 */
export function sequenceLabel(tenant: string, id: string): string {
  return tenant === DEFAULT_TENANT ? id : `${tenant}:${id}`;
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
