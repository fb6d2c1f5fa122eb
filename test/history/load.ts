/**
 * Drives sequences at an even pace for as long as the faults last: each is a closed loop, so its steps have an order that the checker can
 * hold the fleet to, and a late step goes at once, so that an outage is followed by a rush.
 */
import type { Random } from "../setup/random.js";
import type { Call, RecordingClient } from "./client.js";
import type { Ending } from "./history.js";
import type { Pace } from "./pace.js";
import type { SequencePlan } from "./sequences.js";

export interface Load {
  readonly sequences: readonly SequencePlan[];
  /** Taken in turn by sequence. */
  readonly clients: readonly RecordingClient[];
  readonly random: Random;
  readonly pace: Pace;
  /** Share of steps whose outcome is read again afterwards. */
  readonly rereads?: number;
  /** Share of steps that are sent twice at the same time, by different clients. */
  readonly twins?: number;
  /** The last step of every sequence waits for this: it reads the state that the faults have left. */
  readonly calm?: Promise<unknown>;
}

/** Resolves when every sequence has come to its end, or has stopped at a step without outcome or with a failure. */
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
  // Poison must strike while the faults do, and leave time for its four crashes.
  const span = poisoned ? 0.5 : 1;
  const phase = random.unit();
  let asked = 0;
  for (const burst of bursts(calls)) {
    await pace.reached((span * (asked + phase)) / calls.length);
    asked += burst.length;
    if (asked === calls.length && !poisoned) await calm;
    const endings = await Promise.all(
      burst.map(async (call) => {
        const twin = random.chance(twins) ? other.ask(call) : undefined;
        const ending = await client.ask(call);
        await twin;
        return ending;
      }),
    );
    if (!endings.every((ending, j) => isAsExpected(burst[j], ending))) return;
    for (const call of burst) if (random.chance(rereads)) await other.ask(call);
  }
}

function isAsExpected(call: Call | undefined, ending: Ending): boolean {
  return ending.kind === "fail" ? ending.code === call?.expects : ending.kind === "ok" && call?.expects === undefined;
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
