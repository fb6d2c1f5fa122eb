/**
 * The observer of the fleet and its history, with plain commands. One gateway at a time observes,
 * and appends a point to a capped stream every few seconds. renew-turn.lua renews its turn.
 */
import { z } from "zod";
import type { RedisClient } from "../../redis/connect.js";
import { registryKeys } from "../keys.js";

/** Between two points, in ms. */
export const STEP_MS = 5_000;
/** Points that the stream keeps: thirty minutes. */
const MOST_POINTS = 360;
/** How long a gateway observes after it has last renewed its turn, in ms. */
export const TURN_MS = 15_000;

/** What a point says of a model; null if the observer does not know it. */
export const measures = [
  "steps",
  "errors",
  "queued",
  "oldest_ms",
  "live_sequences",
  "tokens",
  "p50_ms",
  "p99_ms",
  "batch_rows",
  "busy_ratio",
] as const;

/** In the order of `measures`. */
export type Measured = readonly (number | null)[];

/** How the fleet stood at a time in Redis ms, by model. */
export interface Point {
  readonly at: number;
  readonly models: Readonly<Record<string, Measured>>;
}

const shape = z.record(z.string(), z.array(z.number().nullable()));

/**
 * Takes the turn to observe, if no gateway has it.
 * @returns undefined if this gateway has the turn now; else after how many ms it may be free
 */
export async function takeTurn(redis: RedisClient, gateway: string): Promise<number | undefined> {
  if ((await redis.set(registryKeys.observer, gateway, "PX", TURN_MS, "NX")) === "OK") return undefined;
  return Math.max(0, await redis.pttl(registryKeys.observer));
}

/** Leaves the turn to other gateways. */
export async function endTurn(redis: RedisClient): Promise<void> {
  await redis.del(registryKeys.observer);
}

export async function appendPoint(redis: RedisClient, models: Point["models"]): Promise<void> {
  await redis.xadd(registryKeys.history, "MAXLEN", MOST_POINTS, "*", "models", JSON.stringify(models));
}

/**
 * The newest points, the oldest of them first. Leaves out what no gateway of this version wrote.
 * @throws the client's error if Redis does not answer
 */
export async function readPoints(redis: RedisClient, most: number): Promise<Point[]> {
  const entries = await redis.xrevrange(registryKeys.history, "+", "-", "COUNT", most);
  const points = entries.flatMap(([id, [, text = ""]]) => {
    const models = parse(text);
    return models === undefined ? [] : [{ at: Number(id.split("-")[0]), models }];
  });
  return points.reverse();
}

function parse(text: string): Point["models"] | undefined {
  try {
    return shape.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
