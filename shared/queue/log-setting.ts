/**
 * How much all processes of the deployment log, once an operator has changed it: a number as in
 * Triton's `log_verbose_level`, and no key otherwise. Gateways and jobs processes read it with the
 * fleet (admission/read-fleet.lua), workers with their heartbeats.
 */
import type { RedisClient } from "../redis/connect.js";
import { registryKeys } from "./keys.js";

/** @param verbosity undefined for the settings of each process */
export async function changeVerbosity(redis: RedisClient, verbosity: number | undefined): Promise<void> {
  const key = registryKeys.logging;
  if (verbosity === undefined) await redis.del(key);
  else await redis.set(key, verbosity);
}

/** @param text the value of the key; empty if there is none */
export function verbosityIn(text: string): number | undefined {
  return text === "" ? undefined : Number(text);
}
