/**
 * After a roll-out the worker that was replaced goes on with the lanes that no other worker reads,
 * for example those of a model that was unloaded, until their requests have ended. Gateways admit
 * no further requests to these lanes once they have seen the other worker.
 */
import type { Logger } from "pino";
import { pinOf, pinText, type Lane, type Pin } from "#shared/queue/address.js";
import { registryKeys } from "#shared/queue/keys.js";
import { readAnnouncements, readMembers } from "#shared/queue/members.js";
import { announcedModels, announcedReplaces } from "#shared/queue/work/liveness/announced-lanes.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { hasWork } from "./upkeep.js";

export interface LingerSettings {
  readonly redis: RedisClient;
  readonly worker: string;
  /** All lanes of the worker. */
  readonly lanes: readonly Lane[];
  readonly clocks: RedisClocks;
  readonly log: Logger;
}

/** In ms. Every gateway has seen the other worker by then. */
const SEEN_BY_ALL_MS = 2_500;
/** Time between two looks at the lanes, in ms. */
const EVERY_MS = 100;
/** The longest time, in ms. The machine holds the models twice meanwhile. */
const MOST_MS = 30_000;

/** Resolves when the worker may leave. */
export async function linger(settings: LingerSettings, signal: AbortSignal): Promise<void> {
  const { redis, log } = settings;
  const alone = await lanesOfNobodyElse(settings);
  if (alone.length === 0) return;
  const until = performance.now() + MOST_MS;
  await delay(SEEN_BY_ALL_MS, signal);
  while (!signal.aborted) {
    const filled = await Promise.all(alone.map((lane) => hasWork(redis, lane)));
    if (!filled.includes(true)) return;
    if (performance.now() > until) return log.warn("requests for models that are served no longer are left");
    await delay(EVERY_MS, signal);
  }
}

/**
 * Other workers whose place is taken do not count: they leave, too, perhaps at this moment.
 * @returns the lanes of this worker that no other worker will read
 */
export async function lanesOfNobodyElse({
  redis,
  worker,
  lanes,
  clocks,
}: Omit<LingerSettings, "log">): Promise<Lane[]> {
  const now = clocks.of(registryKeys.workers).toRedis(performance.now());
  const { living, gone } = await readMembers(redis, now);
  const others = living.filter((name) => name !== worker && !gone.has(name));
  const announced = await readAnnouncements(redis, others);
  const replaced = new Set(announced.map((text) => announcedReplaces(text)));
  const models = announced.flatMap((text, i) => (replaced.has(others[i]) ? [] : announcedModels(text)));
  const text = (model: string, pin: Pin) => `${model}:${pinText(pin)}`;
  const served = new Set(models.map((model) => text(model.name, pinOf(model))));
  return lanes.filter((lane) => !served.has(text(lane.model, lane)));
}
