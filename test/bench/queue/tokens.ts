/** The cost of a stream's token for Redis, with 64 streams over SSE. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startBenchFleet } from "../support/fleet.js";
import type { StreamModel } from "../support/models.js";
import type { Timing } from "../steps/scenarios.js";
import type { StreamLoadJob, StreamLoadResult } from "../streams/load.js";
import { allCalls, describeCalls, innerCalls } from "./counters.js";
import { asking, whileRunning, type RowResult } from "./window.js";

export interface TokensPlan {
  readonly folder: string;
  readonly repository: string;
  readonly model: StreamModel;
  /** File of the model's prompts and answers. */
  readonly references: string;
  readonly timing: Timing;
  readonly progress: (line: string) => void;
}

export interface TokenCost extends RowResult {
  /** Microseconds of Redis' CPU per token. */
  readonly redisUs: number;
  /** Commands per token, without the calls of scripts. */
  readonly inner: number;
}

const STREAMS = 64;

export async function measureTokenCost(plan: TokensPlan): Promise<TokenCost> {
  const { repository, model, references, timing, progress } = plan;
  const folder = mkdtempSync(join(plan.folder, "tokens-"));
  const env = { BATON_MODELS: model.name };
  const fleet = await startBenchFleet({ folder, repository, models: [model.name], workers: 1, env });
  try {
    const job: StreamLoadJob = { port: fleet.port, model, connections: STREAMS, references, taken: 0, ...timing };
    const load = new URL("../streams/load.js", import.meta.url);
    const { result, spent } = await asking(fleet.redis, (redis) =>
      whileRunning<StreamLoadJob, StreamLoadResult>(redis, load, job),
    );
    const { tokens, checked, wrong, fault } = result;
    if (fault !== undefined) progress(`${model.name}: ${fault}`);
    const us = (ms: number) => (ms * 1_000) / tokens;
    return {
      redisUs: us(spent.cpuMs),
      inner: innerCalls(spent.calls) / tokens,
      checked,
      wrong,
      detail:
        `${tokens} tokens, ${Math.round(tokens / spent.seconds)}/s; main thread of Redis ` +
        `${us(spent.mainThreadMs).toFixed(1)} µs; ${Math.round(spent.fileBytes / tokens)} bytes appended per token; ` +
        `${(allCalls(spent.calls) / tokens).toFixed(2)} calls per token: ${describeCalls(spent.calls, tokens)}`,
    };
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
