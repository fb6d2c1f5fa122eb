/**
 * The counts of a whole fleet agree with its clients: many requests of all kinds at once, over HTTP
 * and gRPC, at two gateways and four workers, and no event is counted twice or not at all.
 */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asMessage, GrpcClient, int32s, parameters, type Message } from "../protocols/grpc/client.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";
import { statistics } from "../statistics/load.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const running = useFleet({
  gateways: 2,
  workers: 4,
  models: ["simple", "accumulate", "gen-cheap", "picky"],
  direct: true,
  grpc: true,
  env: { BATON_METRICS_PORT: "0" },
});
/** With 15 requests each; over gRPC five of them are one stream. */
const ROUNDS = 720;
/** Rounds at a time. */
const AT_ONCE = 12;
const STEPS = 5;
const TOKENS = 7;

/** Requests with a deadline that passed, and requests whose deadline did not. */
const hurried = { expired: 0, inTime: 0 };

interface Answer {
  readonly status: number;
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly text: string;
}

/** All answers that clients got. */
const answers: Answer[] = [];

async function post(gateway: number, path: string, body: object, headers: Record<string, string> = {}) {
  const url = running.fleet.urls[gateway % 2] ?? "";
  const sent = JSON.stringify(body);
  const answer = await fetch(`${url}/v2/models/${path}`, { method: "POST", body: sent, headers });
  const text = await answer.text();
  const one = { status: answer.status, bytesIn: sent.length, bytesOut: Buffer.byteLength(text), text };
  answers.push(one);
  return one;
}

const opened = new Map<number, GrpcClient>();
afterAll(() => opened.forEach((one) => one.close()));

function grpcOf(gateway: number): GrpcClient {
  const at = gateway % 2;
  const client = opened.get(at) ?? new GrpcClient(running.fleet.gateways[at]?.grpc ?? "");
  opened.set(at, client);
  return client;
}

/** A call of ModelInfer. @param status of the same answer over HTTP */
async function call(gateway: number, message: Message, status: number): Promise<void> {
  const bytes = asMessage("ModelInfer", message);
  const answer = await grpcOf(gateway).callBytes("/inference.GRPCInferenceService/ModelInfer", bytes);
  expect(answer.status).toBe(status === 200 ? 0 : 13);
  const { answer: answered = Buffer.alloc(0) } = (answer.message ?? {}) as { answer?: Buffer };
  answers.push({ status, bytesIn: bytes.length, bytesOut: answered.length, text: "" });
}

const data = Array<number>(16).fill(1);
const simple = { inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data })) };
const step = (sequence: number, flags: object) => ({
  parameters: { sequence_id: sequence, ...flags },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
});
const bad = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };

/** One of so many rounds uses gRPC for what that can do. */
const GRPC_EVERY = 3;

const tensor = (name: string, datatype: string, shape: readonly number[]) => ({ name, datatype, shape });
const simpleMessage: Message = {
  model_name: "simple",
  inputs: ["INPUT0", "INPUT1"].map((name) => tensor(name, "INT32", [1, 16])),
  raw_input_contents: [int32s(...data), int32s(...data)],
};
const badMessage: Message = {
  model_name: "picky",
  inputs: [tensor("INPUT", "INT64", [1, 1])],
  raw_input_contents: [Buffer.from(BigInt64Array.of(1_000_000n).buffer)],
};

/** A sequence in a stream, whose steps wait for no answers. */
async function streamed(i: number): Promise<void> {
  const stream = grpcOf(i).stream();
  let bytesIn = 0;
  for (let n = 0; n < STEPS; n++) {
    const message = {
      model_name: "accumulate",
      inputs: [tensor("INPUT", "INT32", [1, 1])],
      raw_input_contents: [int32s(1)],
      parameters: parameters({ sequence_id: i + 1, sequence_start: n === 0, sequence_end: n === STEPS - 1 }),
    };
    bytesIn += asMessage("ModelStreamInfer", message).length;
    stream.send(message);
  }
  const told = await stream.finish();
  expect(told.map(({ error_message: text }) => text)).toEqual(Array(STEPS).fill(""));
  answers.push({ status: 200, bytesIn, bytesOut: 0, text: "" });
}

async function sequence(i: number): Promise<void> {
  for (let n = 0; n < STEPS; n++) {
    const flags = { sequence_start: n === 0, sequence_end: n === STEPS - 1 };
    expect((await post(i + n, "accumulate/infer", step(i + 1, flags))).status).toBe(200);
  }
}

/** Whoever notices the deadline first ends the request: the gateway in the queue, or the worker. */
async function hurry(i: number): Promise<void> {
  const { status } = await post(i, "simple/infer", { ...simple, parameters: { timeout: 1_000 } });
  expect([200, 503]).toContain(status);
  hurried[status === 503 ? "expired" : "inTime"]++;
}

async function round(i: number): Promise<void> {
  const key = { "idempotency-key": `key-${i}` };
  const text = { text_input: `Once upon ${i}`, max_tokens: TOKENS, ignore_eos: true };
  const repeated = async () => {
    const first = await post(i, "simple/infer", simple, key);
    const again = await post(i + 1, "simple/infer", simple, key);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.text).toBe(first.text);
  };
  const isGrpc = i % GRPC_EVERY === 0;
  await Promise.all([
    isGrpc ? streamed(i) : sequence(i),
    repeated(),
    hurry(i),
    isGrpc ? call(i, simpleMessage, 200) : post(i, "simple/infer", simple),
    post(i, "gen-cheap/generate", text),
    post(i + 1, "gen-cheap/generate_stream", text),
    isGrpc ? call(i, badMessage, 500) : post(i, "picky/infer", bad),
    post(i, "simple/infer", { inputs: [] }),
    post(i, "no-such-model/infer", simple),
    post(i, "accumulate/infer", step(1_000_000 + i, {})),
  ]);
}

/** The sum of a family over all processes, of the series with this text among their labels. */
function sumOf(pages: readonly Page[], name: string, part = ""): number {
  let sum = 0;
  for (const { samples } of pages) {
    for (const [series, value] of samples) {
      if ((series === name || series.startsWith(`${name}{`)) && series.includes(part)) sum += value;
    }
  }
  return sum;
}

/** @returns the value with numbers in place of the texts of 64-bit integers */
function numbersIn(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => numbersIn(one));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, numbersIn(one, name)]));
  }
  return key !== "version" && /^\d+$/.test(String(value)) ? Number(value) : value;
}

const pages = async (): Promise<Page[]> => {
  const { gateways, workers } = running.fleet;
  const members = [...gateways.map(({ member }) => member), ...workers];
  return Promise.all(members.map(async (member) => scrape(await metricsOf(member))));
};

describe("the counts of a fleet", () => {
  let all: readonly Page[];
  let before: readonly Page[];
  const added = (name: string, part = "") => sumOf(all, name, part) - sumOf(before, name, part);
  beforeAll(async () => {
    before = await pages();
    const left = Array.from({ length: ROUNDS }, (_, i) => i);
    const client = async () => {
      for (let i = left.pop(); i !== undefined; i = left.pop()) await round(i);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    expect(answers.length).toBeGreaterThan(9_000);
    const ended = (now: readonly Page[]) => {
      all = now;
      return (
        added("baton_http_requests_total") >= answers.length &&
        added("baton_generations_total") >= 2 * ROUNDS &&
        added("nv_inference_request_failure") >= ROUNDS + hurried.expired &&
        added("nv_inference_request_success", 'model="accumulate"') >= STEPS * ROUNDS
      );
    };
    all = await readUntil(pages, ended);
  }, 180_000);

  it("agree about answers, refusals and bytes", () => {
    const count = (holds: (status: number) => boolean) => answers.filter(({ status }) => holds(status)).length;
    const bytes = (of: (one: Answer) => number) => answers.reduce((sum, one) => sum + of(one), 0);
    const refused = count((status) => status >= 400);
    expect({
      answers: added("baton_http_requests_total"),
      good: added("baton_http_requests_total", 'status="2xx"'),
      durations: added("baton_http_request_duration_seconds_count"),
      refusals: added("baton_refusals_total"),
      ofSimple: added("baton_refusals_total", 'code="invalid_argument",model="simple"'),
      unknown: added("baton_refusals_total", 'code="unknown_model",model=""'),
      modelErrors: added("baton_refusals_total", 'code="model_error",model="picky"'),
      bytesIn: added("baton_http_request_bytes_total"),
      bytesOut: added("baton_http_response_bytes_total"),
    }).toEqual({
      answers: answers.length,
      good: answers.length - refused,
      durations: answers.length,
      refusals: refused,
      ofSimple: ROUNDS,
      unknown: ROUNDS,
      modelErrors: ROUNDS,
      bytesIn: bytes((one) => one.bytesIn),
      bytesOut: expect.any(Number),
    });
    expect(refused).toBe(4 * ROUNDS + hurried.expired);
    expect(hurried.expired).toBeGreaterThan(0);
    // A stream's events come in chunks, whose frames are on the wire, too.
    expect(added("baton_http_response_bytes_total")).toBeGreaterThanOrEqual(bytes((one) => one.bytesOut));
  });

  it("agree about admissions and what workers committed", () => {
    const steps = STEPS * ROUNDS;
    expect({
      admitted: added("baton_admissions_total", 'said="admitted"'),
      known: added("baton_admissions_total", 'said="known"'),
      simple: added("nv_inference_request_success", 'model="simple"'),
      rows: added("nv_inference_count", 'model="simple"'),
      steps: added("nv_inference_request_success", 'model="accumulate"'),
      begun: added("baton_state_lookups_total", 'model="accumulate",version="1",from="start"'),
      checkpoints: added("baton_checkpoints_total", 'model="accumulate"'),
      timed: added("baton_step_seconds_count", 'model="accumulate"'),
      texts: added("nv_inference_request_success", 'model="gen-cheap"'),
      failed: added("nv_inference_request_failure", 'model="picky",version="1",reason="BACKEND"'),
      rejected: added("nv_inference_request_failure", 'model="simple",version="1",reason="REJECTED"'),
      expired: added("baton_expired_total"),
      waiting: sumOf(all, "baton_requests_waiting"),
      held: sumOf(all, "baton_held_requests"),
    }).toEqual({
      admitted: ROUNDS * (STEPS + 2 + 2 + 1 + 1),
      known: ROUNDS,
      simple: 2 * ROUNDS + hurried.inTime,
      rows: 2 * ROUNDS + hurried.inTime,
      steps,
      begun: ROUNDS,
      checkpoints: steps,
      timed: steps,
      texts: 2 * ROUNDS,
      failed: ROUNDS,
      rejected: hurried.expired,
      expired: hurried.expired,
      waiting: 0,
      held: 0,
    });
    // A gateway hears of no outcome that it gives itself.
    const [outcomes, awaited] = [added("baton_outcomes_total"), ROUNDS * (STEPS + 2 + 1 + 1)];
    expect(outcomes).toBeLessThanOrEqual(awaited);
    expect(outcomes).toBeGreaterThanOrEqual(awaited - hurried.expired);
  });

  it("agree with the statistics, at every gateway", async () => {
    const wanted = {
      accumulate: [STEPS * ROUNDS, 0],
      "gen-cheap": [2 * ROUNDS, 0],
      picky: [0, ROUNDS],
      simple: [2 * ROUNDS + hurried.inTime, hurried.expired],
    };
    for (const url of running.fleet.urls) {
      const read = async () => {
        const found = await statistics(url, "stats");
        return Object.fromEntries(
          found.map(({ name, inference_stats: { success, fail } }) => [name, [success.count, fail.count]]),
        );
      };
      // Another gateway's report comes with its next note, a worker's with one of its next beats.
      const agrees = (now: object) => isDeepStrictEqual(now, wanted);
      expect(await readUntil(read, agrees, { patienceMs: 15_000 })).toEqual(wanted);
    }
  });

  it("are the same over gRPC", async () => {
    for (const gateway of [0, 1]) {
      const overHttp = await statistics(running.fleet.urls[gateway] ?? "", "stats");
      const { message } = await grpcOf(gateway).call("ModelStatistics", {});
      expect(numbersIn(message?.["model_stats"])).toEqual(overHttp);
      const { message: one } = await grpcOf(gateway).call("ModelStatistics", { name: "simple", version: "1" });
      expect(numbersIn(one?.["model_stats"])).toEqual(overHttp.filter(({ name }) => name === "simple"));
    }
  });

  it("agree about tokens", () => {
    const generations = 2 * ROUNDS;
    expect({
      tokens: added("baton_generated_tokens_total"),
      ends: added("baton_generations_total", 'reason="length"'),
      firsts: added("baton_time_to_first_token_seconds_count"),
      between: added("baton_inter_token_seconds_count"),
      looked: added("baton_prefix_cache_tokens_total") - added("baton_prompt_tokens_total"),
      readers: sumOf(all, "baton_stream_readers"),
      running: sumOf(all, "baton_streams_running"),
    }).toEqual({
      tokens: TOKENS * generations,
      ends: generations,
      firsts: generations,
      between: (TOKENS - 1) * generations,
      looked: 0,
      readers: 0,
      running: 0,
    });
  });
});
