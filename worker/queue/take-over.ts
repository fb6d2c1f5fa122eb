/** The typed wrapper of take-over.lua. */
import { GROUP, laneKeys, logKey, outcomeKey } from "#shared/keys.js";
import { defineScript, words } from "#shared/redis/script.js";
import type { StreamQueue } from "./lane.js";

const answers = ["together", "alone", "ended", "lost"] as const;
export type Takeover = (typeof answers)[number];

const script = defineScript(new URL("./take-over.lua", import.meta.url), words(answers));

/** @param name names this takeover, never empty: safe to repeat under the same name. @returns one word per delivery, in order. */
export async function takeOver(
  { redis, lane, consumer }: StreamQueue,
  deliveries: readonly { readonly entry: string; readonly request: string }[],
  name: string,
): Promise<Takeover[]> {
  if (deliveries.length === 0) return [];
  const keys = deliveries.flatMap(({ request }) => [outcomeKey(lane, request), logKey(lane, request)]);
  const entries = deliveries.map(({ entry }) => entry);
  const { ready, runs } = laneKeys(lane);
  return script(redis, [ready, runs, ...keys], [GROUP, consumer, name, ...entries]);
}
