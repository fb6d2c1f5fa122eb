/**
 * Drives sequences at an even pace for as long as the faults last. Each sequence is a closed loop,
 * so its steps have an order that the checker can test. The load sends a late step at once, so a
 * rush follows an outage.
 */
import type { Random } from "../fleet/random.js";
import { PATIENCE_MS, type Call, type RecordingClient } from "./client.js";
import type { Ending } from "./history.js";
import type { Pace } from "./pace.js";
import type { SequencePlan } from "./sequences.js";
import { delay } from "#shared/retry.js";

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

const WIDTH = 16;

export interface Bystander {
  readonly client: RecordingClient;
  readonly tenant: string;
  /** How many levels of priority the requests take in turn. With 0, requests name no priority. */
  readonly priorities: number;
  readonly everyMs: number;
}

/**
 * The well-behaved client: sends steady stateless requests beside the load until the signal aborts.
 * None of these may fail.
 */
export async function runBystander(bystander: Bystander, until: AbortSignal): Promise<void> {
  const { client, tenant, priorities, everyMs } = bystander;
  for (let i = 1; !until.aborted; i++) {
    const priority = priorities === 0 ? {} : { priority: 1 + (i % priorities) };
    await client.ask({ ...simpleCall(`bystander-${tenant}-${i}`, i, priority), tenant });
    await delay(everyMs, until);
  }
}

/** A request for the model `simple`, which gives the sum and the difference of two vectors. */
function simpleCall(request: string, n: number, priority: { readonly priority?: number }): Call {
  const parameters = { timeout: PATIENCE_MS * 1_000, ...priority };
  const [a, b] = [Array.from({ length: WIDTH }, (_, i) => i + n), Array.from({ length: WIDTH }, (_, i) => 3 * i)];
  const input = (name: string, data: readonly number[]) => ({ name, datatype: "INT32", shape: [1, WIDTH], data });
  const combine = (sign: 1 | -1) => a.map((x, i) => x + sign * (b[i] ?? 0)).join(",");
  return {
    request,
    model: "simple",
    answer: `${combine(1)}|${combine(-1)}`,
    body: JSON.stringify({ id: request, parameters, inputs: [input("INPUT0", a), input("INPUT1", b)] }),
  };
}
