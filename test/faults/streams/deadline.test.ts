/**
 * A generation's deadline is that of its first token. A request without a token by then ends, and
 * no model has run it. A request with a token continues to its end on any worker. The gateway that
 * admitted the request keeps the deadline. If that gateway has died, the worker that holds or next
 * reads the request keeps the deadline.
 */
import { afterEach, beforeAll, expect, it } from "vitest";
import type { Gateway } from "../../support/fleet/fleet.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import type { Member } from "../../support/fleet/member.js";
import { eventsIn, recordsIn } from "../../support/streams/event-source.js";

/** Long enough for a first token on a busy machine. */
const TIMEOUT_MS = 3_000;
const TOKENS = 1_500;

const served = useFleet({ gateways: 2, models: ["gen-mha"], env: { BATON_GENERATOR_SLOTS: "1" } });
let first: Gateway;
let second: Gateway;
let worker: Member;
beforeAll(() => {
  const [one, two] = served.fleet.gateways;
  const [only] = served.fleet.workers;
  if (one === undefined || two === undefined || only === undefined) throw new Error("the fleet is not complete");
  [first, second, worker] = [one, two, only];
});
afterEach(async () => {
  worker.thaw();
  if (!worker.process.alive) await worker.start();
  if (!first.member.process.alive) await first.member.start();
  await served.fleet.whenServing();
});

const parameters = {
  text_input: "once",
  max_tokens: TOKENS,
  ignore_eos: true,
  temperature: 0,
  timeout: TIMEOUT_MS * 1_000,
};

interface State {
  readonly state: string;
  readonly admitted_at: string;
  readonly outcome?: { readonly code?: string; readonly choices?: unknown[] };
}

function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${first.url}/v2/models/gen-mha/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...parameters, ...body }),
  });
}

async function submit(body: object = {}): Promise<string> {
  const answer = await post("generate", body, { prefer: "respond-async" });
  expect(answer.status).toBe(202);
  return ((await answer.json()) as { id: string }).id;
}

async function stateOf(id: string): Promise<State> {
  return (await (await fetch(`${second.url}/v2/requests/${id}`)).json()) as State;
}

async function recordsOf(id: string) {
  return recordsIn(await (await fetch(`${second.url}/v2/requests/${id}/events`)).text());
}

/**
 * Resolves a second after the request's deadline, so that the process which keeps the deadline has
 * had time to act. Redis runs on this host and has its clock.
 */
async function pastDeadline(id: string): Promise<void> {
  const dueAt = Date.parse((await stateOf(id)).admitted_at) + TIMEOUT_MS;
  await expect.poll(() => Date.now()).toBeGreaterThan(dueAt + 1_000);
}

/** Resolves when the request has its first token but not all, and its worker is frozen. */
async function stoppedAfterFirstToken(id: string): Promise<void> {
  await expect.poll(() => stateOf(id), { interval: 5 }).toMatchObject({ state: "running" });
  worker.freeze();
  expect(await stateOf(id)).toMatchObject({ state: "running" });
}

async function endsWell(id: string): Promise<void> {
  await expect.poll(() => stateOf(id)).toMatchObject({ state: "completed" });
  const records = await recordsOf(id);
  expect(records.map(({ index }) => index)).toEqual(records.map((_, i) => i));
  expect(records.flatMap(({ choices }) => choices.flatMap(({ tokens }) => tokens))).toHaveLength(TOKENS);
  expect(records.at(-1)).toMatchObject({ reason: "finished" });
}

async function expires(id: string): Promise<State> {
  const expired = { state: "expired", outcome: { code: "expired" } };
  await expect.poll(() => stateOf(id)).toMatchObject(expired);
  const events = await recordsOf(id);
  expect(events.filter(({ final }) => final === true)).toHaveLength(1);
  return stateOf(id);
}

const options = { timeout: 90_000 };

it("a stream that has a token by its deadline goes on to its end", options, async () => {
  const id = await submit();
  await stoppedAfterFirstToken(id);
  await pastDeadline(id);
  worker.thaw();
  await endsWell(id);
});

it("its reader sees every token of it, and no error", options, async () => {
  const answer = await post("generate_stream", {});
  const id = answer.headers.get("baton-request-id") ?? "";
  await stoppedAfterFirstToken(id);
  await pastDeadline(id);
  worker.thaw();
  const events = eventsIn(await answer.text()).map(({ data }) => data);
  expect(events.filter((data) => data.includes('"error"'))).toEqual([]);
  const texts = events.map((data) => (JSON.parse(data) as { text_output: string }).text_output);
  const records = await recordsOf(id);
  expect(texts.join("")).toBe(records.flatMap(({ choices }) => choices.map(({ text }) => text)).join(""));
  await endsWell(id);
});

it("so does one that another worker takes over after its deadline, its gateway dead too", options, async () => {
  const id = await submit();
  await stoppedAfterFirstToken(id);
  await Promise.all([worker.kill(), first.member.kill()]);
  await pastDeadline(id);
  await worker.start();
  await endsWell(id);
});

it("what is queued for longer than its deadline ends, and no model has run it", options, async () => {
  const running = await submit({ timeout: 60_000_000 });
  await stoppedAfterFirstToken(running);
  const queued = await post("generate_stream", {});
  expect(queued.status).toBe(503);
  expect(await queued.text()).toBe('data: {"error":"Request timeout expired","code":"expired"}\n\n');
  worker.thaw();
  await endsWell(running);
});

it("so does what is queued or waits for its turn, though its gateway is dead", options, async () => {
  const running = await submit({ timeout: 60_000_000 });
  await stoppedAfterFirstToken(running);
  const turn = { sequence_id: 7, sequence_start: true };
  const ids = [await submit(), await submit(turn), await submit({ ...turn, sequence_start: false })];
  await first.member.kill();
  await pastDeadline(ids[2] ?? "");
  worker.thaw();
  for (const id of ids) {
    expect((await expires(id)).outcome).not.toMatchObject({ choices: [{}] });
    expect(await recordsOf(id)).toMatchObject([{ index: 0, reason: "expired" }]);
  }
  await endsWell(running);
});

it.each(["alive", "dead"])(
  "a limit of the whole answer ends it in its middle, its gateway %s",
  options,
  async (how) => {
    const id = await submit({ timeout: 0, total_timeout: TIMEOUT_MS * 1_000 });
    await stoppedAfterFirstToken(id);
    if (how === "dead") await first.member.kill();
    await pastDeadline(id);
    if (how === "dead") worker.thaw();
    const { outcome } = await expires(id);
    expect(outcome).toMatchObject({ error: "the answer was not finished within its total_timeout" });
    expect(outcome?.choices).toHaveLength(1);
  },
);
