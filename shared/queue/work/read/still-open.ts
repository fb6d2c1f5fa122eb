/** The typed wrapper of still-open.lua: asks about requests between two of their runs. */
import type { RequestAddress } from "../../address.js";
import { inCalls } from "../../calls.js";
import { loadKey, loadKeyBeside, outcomeKey } from "../../keys.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, words } from "../../../redis/script.js";

const answers = ["open", "ended", "unwanted"] as const;
export type StillOpen = (typeof answers)[number];

const script = defineScript(new URL("./still-open.lua", import.meta.url), words(answers), {
  keys: ["load", { records: [] }],
  args: [],
});

/** @returns a word for each request, in order */
export function stillOpen(redis: RedisClient, requests: readonly RequestAddress[]): Promise<StillOpen[]> {
  return inCalls(
    redis,
    requests,
    ({ bucket }) => bucket,
    (some) => {
      const records = some.map(outcomeKey);
      const load = redis.isCluster ? loadKeyBeside(records[0] ?? "") : loadKey(undefined);
      return script(redis, { load, records }, {});
    },
  );
}
