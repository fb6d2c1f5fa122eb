/** Every few seconds one worker per lane looks for steps that nobody would ever deliver again, and puts them right. */
import type { Logger } from "pino";
import { laneKeys, outcomeKey } from "#shared/keys.js";
import { cancelRequest } from "#shared/queue/cancel.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { delay, retrying } from "#shared/retry.js";
import type { LaneQueue } from "../queue/lane.js";
import { readProgress, sealedOutcome } from "../queue/progress.js";
import { beginRound, mendSequence, orphans, reapConsumers, requeue } from "../queue/reconcile.js";

const EVERY_MS = 2_000;
/** Per round; the rest waits for the next one. */
const LIMIT = 1_000;
const LOOKS_AT_ONCE = 50;
/** A consumer that has not read for this long belongs to a process that is gone. */
const CONSUMER_IDLE_MS = 60_000;
const OUTCOME_TTL_MS = 60_000;
const END_BUDGET_MS = 5_000;

export async function reconcileWhileOpen(queue: LaneQueue, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(EVERY_MS * (0.8 + Math.random() * 0.4), signal);
    if (signal.aborted || queue.redis.status !== "ready") continue;
    try {
      if (await beginRound(queue, EVERY_MS)) await reconcile(queue, log, signal);
    } catch (error) {
      log.debug({ error: String(error) }, "reconcile failed; the next round tries again");
    }
  }
}

async function reconcile(queue: LaneQueue, log: Logger, signal: AbortSignal): Promise<void> {
  const { redis, lane } = queue;
  const { live } = laneKeys(lane);
  // What looks orphaned is mostly just being settled: the script looks again, and decides.
  const suspected = await orphans(queue, LIMIT);
  const count = suspected.length === 0 ? 0 : await requeue(queue, suspected);
  if (count > 0) log.error({ count }, "orphaned entries queued anew");

  const [seconds] = await redis.time();
  await redis.zremrangebyscore(live, "-inf", Number(seconds) * 1_000);
  const busy = await redis.zrange(live, "+inf", "+inf", "BYSCORE", "LIMIT", 0, LIMIT);
  // A drain waits for this round: under load a look takes a while, and a thousand in a row would take longer than it may.
  for (let i = 0; i < busy.length && !signal.aborted; i += LOOKS_AT_ONCE) {
    await Promise.all(busy.slice(i, i + LOOKS_AT_ONCE).map((name) => mend(queue, name, log)));
  }
  await reapConsumers(queue, CONSUMER_IDLE_MS);
}

async function mend(queue: LaneQueue, name: string, log: Logger): Promise<void> {
  const request = await mendSequence(queue, name);
  if (request === undefined) return;
  log.error({ request }, "a queued step was deleted from outside");
  // The sequence will not be found broken again, so this round is the last that knows of the request.
  await retrying(() => end(queue, request), { budgetMs: END_BUDGET_MS });
}

async function end({ redis, lane, streams = false }: LaneQueue, request: string): Promise<void> {
  const { said } = await cancelRequest(
    redis,
    { lane, request },
    {
      code: "request_lost",
      message: "the queued request was destroyed before it ran",
      ttlMs: OUTCOME_TTL_MS,
      stream: streams,
    },
  );
  if (said !== "sealed") return;
  // Its readers have been told how it ended, and the commit that would have said the same is refused from now on: the sequence has moved on.
  const [progress] = await readProgress(redis, lane, [request]);
  const { kind, body } = sealedOutcome(progress?.records ?? []);
  await giveOutcome(redis, [outcomeKey(lane, request)], [kind, body, OUTCOME_TTL_MS, 1]);
}
