/**
 * A client that leaves gives up what it has sent: requests leave the queue, and the sequences of
 * its steps end. Requests under a key, and steps with a number, run to their end.
 */
import { afterAll, afterEach, beforeEach, expect, it } from "vitest";
import { GrpcClient, int32s, parameters, type Message } from "../../protocols/grpc/client.js";
import { useFleet } from "../../support/fleet/use-fleet.js";

// The worker is frozen for a while, and must not be buried meanwhile.
const running = useFleet({ models: ["echo-int32", "accumulate"], direct: true, grpc: true, leaseMs: 60_000 });
let opened: GrpcClient | undefined;
const client = (): GrpcClient => (opened ??= new GrpcClient(running.fleet.gateways[0]?.grpc ?? ""));
afterAll(() => opened?.close());
beforeEach(() => running.fleet.workers[0]?.freeze());
afterEach(() => running.fleet.workers[0]?.thaw());

const CANCELLED = 1;
const DEADLINE_EXCEEDED = 4;

const request = (model: string, value: number, given: Parameters<typeof parameters>[0] = {}): Message => ({
  model_name: model,
  id: String(value),
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(value)],
  parameters: parameters(given),
});

async function waiting(model: string): Promise<number> {
  const answer = await fetch(`${running.url}/v2/models/${model}/requests`);
  return ((await answer.json()) as { requests: unknown[] }).requests.length;
}

const sequence = async (id: number): Promise<number> =>
  (await fetch(`${running.url}/v2/models/accumulate/sequences/${id}`)).status;

it("a call that its client cancels leaves the queue", async () => {
  const leaving = new AbortController();
  const asked = client().call("ModelInfer", request("echo-int32", 1), { signal: leaving.signal });
  await expect.poll(() => waiting("echo-int32")).toBe(1);
  leaving.abort();
  expect((await asked).status).toBe(CANCELLED);
  await expect.poll(() => waiting("echo-int32")).toBe(0);
});

it("a call whose deadline passes leaves the queue", async () => {
  const asked = await client().call("ModelInfer", request("echo-int32", 1), { deadlineMs: 500 });
  expect(asked.status).toBe(DEADLINE_EXCEEDED);
  await expect.poll(() => waiting("echo-int32")).toBe(0);
});

it("a call under a key runs to its end, and its repetition gets the answer", async () => {
  const leaving = new AbortController();
  const headers = { "idempotency-key": "kept" };
  const asked = client().call("ModelInfer", request("echo-int32", 7), { signal: leaving.signal, headers });
  await expect.poll(() => waiting("echo-int32")).toBe(1);
  leaving.abort();
  await asked;
  const again = client().call("ModelInfer", request("echo-int32", 7), { headers });
  running.fleet.workers[0]?.thaw();
  expect((await again).message?.["raw_output_contents"]).toEqual([int32s(7)]);
});

it.each([
  ["that is parsed on the socket", { cookie: "" }],
  ["that is parsed by node", { cookie: "a=b" }],
])("a step over HTTP, %s, ends its sequence, unless it has a number", async (kind, more) => {
  running.fleet.workers[0]?.thaw();
  const send = (id: number, given: object, signal?: AbortSignal) =>
    fetch(`${running.url}/v2/models/accumulate/infer`, {
      method: "POST",
      headers: kind.endsWith("node") ? { cookie: more.cookie } : {},
      body: JSON.stringify({
        parameters: { sequence_id: id, ...given },
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
      }),
      ...(signal && { signal }),
    });
  const [plain, numbered] = kind.endsWith("node") ? [41, 42] : [43, 44];
  for (const id of [plain, numbered]) expect((await send(id, { sequence_start: true })).status).toBe(200);
  running.fleet.workers[0]?.freeze();
  const leaving = new AbortController();
  const asked = [send(plain, {}, leaving.signal), send(numbered, { sequence_step: 2 }, leaving.signal)];
  await expect.poll(() => waiting("accumulate")).toBe(2);
  leaving.abort();
  await Promise.allSettled(asked);
  await expect.poll(() => sequence(plain)).toBe(404);
  running.fleet.workers[0]?.thaw();
  const again = await send(numbered, { sequence_step: 3 });
  expect(((await again.json()) as { outputs: { data: number[] }[] }).outputs[0]?.data).toEqual([3]);
});

it("a stream that its client cancels gives up its requests, and ends the sequences of its steps", async () => {
  running.fleet.workers[0]?.thaw();
  const stream = client().stream();
  for (const id of [31, 32]) stream.send(request("accumulate", id, { sequence_id: id, sequence_start: true }));
  await stream.received(2);
  running.fleet.workers[0]?.freeze();
  stream.send(request("accumulate", 1, { sequence_id: 31 }));
  stream.send(request("accumulate", 2, { sequence_id: 31 }));
  // The number makes this step safe to repeat, so its client may come back for it.
  stream.send(request("accumulate", 3, { sequence_id: 32, sequence_step: 2 }));
  stream.send(request("echo-int32", 4));
  await expect.poll(() => waiting("echo-int32")).toBe(1);
  await expect.poll(() => waiting("accumulate")).toBe(3);
  stream.call.cancel();
  await expect.poll(() => waiting("echo-int32")).toBe(0);
  await expect.poll(() => sequence(31)).toBe(404);
  expect(await sequence(32)).toBe(200);
  running.fleet.workers[0]?.thaw();
  const again = client().stream();
  again.send(request("accumulate", 5, { sequence_id: 32, sequence_step: 3 }));
  const [answer] = await again.finish();
  expect(answer?.["infer_response"]).toMatchObject({ raw_output_contents: [int32s(40), {}, {}] });
});
