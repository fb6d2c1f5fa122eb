/** A lane's scheduling loop: ask the plan what to do, do it, settle it. The model never waits for Redis: a batch settles while the next one runs. */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { storeOutcome, outcomeOf } from "#shared/contract/outcome.js";
import { InferenceError } from "#shared/errors.js";
import { retrying } from "#shared/retry.js";
import type { Hand, Held } from "../intake/hand.js";
import type { ServingModel } from "../model/serving.js";
import { beginAlone } from "../queue/begin-alone.js";
import { execute, failSequence, type ExecuteLimits, type Execution, type Settled } from "./execute.js";
import { planBatch } from "./plan.js";
import type { Solitude } from "./solitude.js";
import { settle, type Settler } from "./settle.js";

export interface LaneLoop {
  readonly model: ServingModel;
  readonly hand: Hand;
  readonly settler: Settler;
  readonly limits: ExecuteLimits;
  /** Of all lanes of this process. */
  readonly solitude: Solitude;
  readonly maxRunsAlone: number;
  readonly log: Logger;
}

/** Batches that may be settling at once; past that the loop waits, so a slow Redis slows intake instead of filling memory. */
const SETTLING_AT_ONCE = 2;

export async function runLane(lane: LaneLoop, signal: AbortSignal): Promise<void> {
  const { model, hand } = lane;
  const settling = new Set<Promise<void>>();
  /** The last batch, run but not yet turned into settlements. */
  let ran: Execution | undefined;

  const settleSoon = (settled: readonly Settled[]) => {
    const done: Promise<void> = settleAndDrop(lane, settled).finally(() => settling.delete(done));
    settling.add(done);
  };
  const settleRan = () => {
    if (ran === undefined) return;
    hand.drop(ran.abandoned.map(({ delivery }) => delivery.entry));
    settleSoon(ran.settle());
    ran = undefined;
  };

  while (!signal.aborted) {
    const plan = planBatch(hand.waiting, hand.suspects, performance.now(), model.limits);
    if (plan.kind !== "run") settleRan();
    switch (plan.kind) {
      case "wait":
        await hand.arrived.wait(plan.until);
        break;
      case "expire":
        hand.take(plan.expired);
        settleSoon(plan.expired.map(expire));
        break;
      case "alone":
        hand.take([plan.suspect]);
        await lane.solitude.alone(() => runAlone(lane, plan.suspect));
        break;
      case "run": {
        hand.take(plan.batch);
        const running = lane.solitude.share(() => execute(model, plan.batch, lane.limits));
        settleRan();
        while (settling.size >= SETTLING_AT_ONCE) await Promise.race(settling);
        ran = await running;
        lane.log.debug({ rows: plan.batch.length, ranMs: ran.ranMs }, "batch");
        break;
      }
    }
  }
  settleRan();
  await Promise.all(settling);
}

/** No model runs a request past its deadline. A START that never ran leaves no sequence behind. */
function expire({ delivery }: Held): Settled {
  return {
    delivery,
    outcome: storeOutcome(outcomeOf(new InferenceError("expired", "Request timeout expired"))),
    state: { action: delivery.start ? "fail" : "keep" },
    deadReason: undefined,
    checkpoint: undefined,
  };
}

async function runAlone(lane: LaneLoop, suspect: Held): Promise<void> {
  const { model, hand, settler, maxRunsAlone, limits, log } = lane;
  const { entry } = suspect.delivery;
  try {
    // Only a run is counted: without its state the step would not run.
    if ((await suspect.state).kind === "unavailable") return hand.drop([entry]);
    const run = randomUUID();
    const verdict = await retrying(() => beginAlone(settler.queue, entry, maxRunsAlone, run), {
      budgetMs: settler.budgetMs,
    });
    if (verdict === "lost") return hand.drop([entry]);
    if (verdict === "poison") {
      log.error({ request: suspect.delivery.request, step: suspect.delivery.step }, "request set aside");
      const error = new InferenceError("poison_request", "the request was set aside: no worker that ran it came back");
      return await settleAndDrop(lane, [failSequence(suspect, error, "poison_request")]);
    }
    const execution = await execute(model, [suspect], limits);
    hand.drop(execution.abandoned.map(({ delivery }) => delivery.entry));
    await settleAndDrop(lane, execution.settle());
  } catch (error) {
    log.warn({ error: String(error) }, "a suspect was left to another worker");
    hand.drop([entry]);
  }
}

async function settleAndDrop({ settler, hand, log }: LaneLoop, settled: readonly Settled[]): Promise<void> {
  try {
    const { lost, already } = await settle(settler, settled);
    if (lost + already > 0) log.warn({ lost, already }, "commits refused: the steps were taken over");
  } catch (error) {
    log.error({ steps: settled.length, error: String(error) }, "commit failed; the steps will run again");
  } finally {
    hand.drop(settled.map(({ delivery }) => delivery.entry));
  }
}
