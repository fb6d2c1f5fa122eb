/**
 * The well-behaved clients, which send steady stateless requests beside the load. None of these may
 * fail, and each has a single right answer.
 */
import { delay } from "#shared/retry.js";
import type { Call } from "../doors/call.js";
import { joined } from "../doors/door.js";
import type { DoorName } from "../doors/doors.js";
import { PATIENCE_MS, type RecordingClient } from "./client.js";
import { atLevel, type SequencesPlan } from "./sequences.js";

interface Kind {
  readonly door: DoorName;
  /** How many requests of a tenant are under way at a time. */
  readonly lanes: number;
  /** The pause between two requests of a lane, in ms. */
  readonly everyMs: number;
  /** @param n counts the requests of a lane from 1 */
  readonly callOf: (n: number, request: string) => Call;
}

/** The bystanders by name: another kind of stateless request is another line. */
export const bystanders = {
  simple: { door: "http", lanes: 1, everyMs: 50, callOf: sumCall },
  cached: { door: "grpc-call", lanes: 1, everyMs: 50, callOf: cachedCall },
  tells: { door: "grpc-stream", lanes: 2, everyMs: 50, callOf: tellsCall },
  // So many lanes that some of their requests find the queue full while workers are away.
  crowd: { door: "grpc-unordered", lanes: 48, everyMs: 4_000, callOf: sumCall },
} as const satisfies Record<string, Kind>;

export type BystanderName = keyof typeof bystanders;

export interface Bystander {
  readonly client: RecordingClient;
  readonly name: BystanderName;
  readonly tenant: string;
  /** As in the plan of sequences. */
  readonly levels: NonNullable<SequencesPlan["levels"]>;
}

/** Sends requests until the signal aborts. */
export async function runBystander(bystander: Bystander, until: AbortSignal): Promise<void> {
  const { client, name, tenant, levels } = bystander;
  const { lanes, everyMs, callOf } = bystanders[name];
  const lane = async (at: number) => {
    for (let n = 1; !until.aborted; n++) {
      const call = callOf(n, `bystander-${name}-${tenant}-${at}-${n}`);
      const all = levels[call.model] ?? [];
      await client.ask({ ...atLevel(call, all[(at + n) % all.length]), tenant });
      await delay(everyMs, until);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, at) => lane(at)));
}

const parameters = { timeout: PATIENCE_MS * 1_000 };
const WIDTH = 16;

/** A request for the model `simple`, which gives the sum and the difference of two vectors. */
function sumCall(n: number, request: string): Call {
  const [a, b] = [Array.from({ length: WIDTH }, (_, i) => i + n), Array.from({ length: WIDTH }, (_, i) => 3 * i)];
  const input = (name: string, data: readonly number[]) =>
    ({ name, datatype: "INT32", shape: [1, WIDTH], data }) as const;
  const combine = (sign: 1 | -1) => a.map((x, i) => x + sign * (b[i] ?? 0)).join(",");
  return {
    request,
    model: "simple",
    answer: `${combine(1)}|${combine(-1)}`,
    parameters,
    inputs: [input("INPUT0", a), input("INPUT1", b)],
  };
}

/** How many different requests a gateway may answer from the cache. */
const REPEATED = 7;

/** Has no key, because the cache leaves requests with a key alone. */
function cachedCall(n: number, request: string): Call {
  return { ...sumCall(n % REPEATED, request), unkeyed: true };
}

/** The fewest and the most answers to a request of `tells-slowly`. */
const [FEWEST, MOST] = [4, 15] as const;

/** A request for the sums up to each number, in as many answers. */
function tellsCall(n: number, request: string): Call {
  const upTo = FEWEST + ((n * 7) % (MOST - FEWEST + 1));
  const sums = Array.from({ length: upTo }, (_, i) => ({ index: i, output: String(((i + 1) * (i + 2)) / 2) }));
  return {
    request,
    model: "tells-slowly",
    answer: joined(sums),
    parameters,
    inputs: [{ name: "N", datatype: "FP32", shape: [1, 1], data: [upTo] }],
  };
}
