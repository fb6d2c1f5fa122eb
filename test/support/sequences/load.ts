/**
 * Drives sequences at an even pace for as long as the faults last. Each sequence is a closed loop,
 * so its steps have an order that the checker can test. The load sends a late step at once, so a
 * rush follows an outage.
 */
import { isRight, type Ending } from "../doors/ask.js";
import type { Call } from "../doors/call.js";
import type { Random } from "../fleet/random.js";
import type { RecordingClient } from "./client.js";
import type { Pace } from "./pace.js";
import type { SequencePlan } from "./sequences.js";

export interface Load {
  readonly sequences: readonly SequencePlan[];
  /** Each sequence takes the next client. */
  readonly clients: readonly RecordingClient[];
  readonly random: Random;
  readonly pace: Pace;
  /** The share of steps whose outcome a client reads again afterwards. */
  readonly rereads?: number;
  /** The share of steps that two clients send at the same time. */
  readonly twins?: number;
  /**
   * The last step of every sequence waits for this promise, and so reads the state that the faults
   * have left.
   */
  readonly calm?: Promise<unknown>;
}

/**
 * Resolves when every sequence has ended, or has stopped at a step that failed or has no outcome.
 */
export async function runLoad(load: Load): Promise<void> {
  await Promise.all(
    load.sequences.map((sequence, i) => runSequence(load, sequence, i, load.random.fork(sequence.label))),
  );
}

async function runSequence(load: Load, sequence: SequencePlan, i: number, random: Random): Promise<void> {
  const { clients, pace, rereads = 0, twins = 0, calm } = load;
  const { calls, poisoned } = sequence;
  const client = clients[i % clients.length];
  const other = clients[(i + 1) % clients.length];
  if (client === undefined || other === undefined) throw new Error("a load needs a client");
  // Poison must strike during the faults, and leave time for its four crashes.
  const span = poisoned ? 0.5 : 1;
  const phase = random.unit();
  let asked = 0;
  for (const burst of bursts(calls)) {
    await pace.reached((span * (asked + phase)) / calls.length);
    asked += burst.length;
    if (asked === calls.length && !poisoned) await calm;
    const endings = await Promise.all(
      burst.map(async (call) => {
        // A refusal of one of two equal requests would say nothing about the effect of the other.
        const twin = call.mayFail === undefined && random.chance(twins) ? other.ask(call) : undefined;
        const ending = await client.ask(call);
        await twin;
        return ending;
      }),
    );
    if (!endings.every((ending, j) => isAsExpected(burst[j], ending))) return;
    for (const [j, call] of burst.entries()) {
      const ending = endings[j];
      // Asked again, a request that no gateway took would be taken.
      const isRefused = ending?.kind === "fail" && ending.refused === true;
      if (random.chance(rereads) && !isRefused) await other.ask(call);
    }
  }
}

function isAsExpected(call: Call | undefined, ending: Ending): boolean {
  if (ending.kind === "unknown" || call === undefined) return false;
  return isRight(call, ending.kind === "ok" ? "ok" : ending.code);
}

function bursts(calls: readonly Call[]): Call[][] {
  const groups: Call[][] = [];
  for (const call of calls) {
    const last = groups.at(-1);
    if (last?.[0]?.burst === call.burst) last?.push(call);
    else groups.push([call]);
  }
  return groups;
}
