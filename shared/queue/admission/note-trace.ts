/** The typed wrapper of note-trace.lua: the trace of a sampled stream, for its later readers. */
import { readTraceparent, writeTraceparent, type SpanIds } from "../../trace/context.js";
import type { RequestAddress } from "../address.js";
import { outcomeKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";

const script = defineScript(new URL("./note-trace.lua", import.meta.url), () => undefined, {
  keys: ["record"],
  args: ["trace"],
});

/** @param admitted the span of the admission */
export function noteTrace(redis: RedisClient, stream: RequestAddress, admitted: SpanIds): Promise<void> {
  return script(redis, { record: outcomeKey(stream) }, { trace: writeTraceparent(admitted) });
}

/** @returns undefined if the stream was not sampled */
export async function readTrace(redis: RedisClient, stream: RequestAddress): Promise<SpanIds | undefined> {
  return readTraceparent(await redis.hget(outcomeKey(stream), "trace"));
}
