/** ModelInfer and the other unary methods, at a real gateway and worker. */
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { GrpcClient, HEALTH, int32s, parameters, type Message } from "./client.js";

const running = useFleet({ models: ["echo-int32", "accumulate", "echo-bytes"], direct: true, grpc: true });
let opened: GrpcClient | undefined;
const client = (): GrpcClient => (opened ??= new GrpcClient(running.fleet.gateways[0]?.grpc ?? ""));
afterAll(() => opened?.close());

const echo = (value: number, more: Message = {}): Message => ({
  model_name: "echo-int32",
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(value)],
  ...more,
});

describe("the server", () => {
  it("lives and is ready", async () => {
    expect((await client().call("ServerLive", {})).message).toEqual({ live: true });
    expect((await client().call("ServerReady", {})).message).toEqual({ ready: true });
    expect((await client().call("Check", { service: "any" }, { service: HEALTH })).message).toEqual({
      status: "SERVING",
    });
  });

  it("describes models as over HTTP", async () => {
    const { message } = await client().call("ModelMetadata", { name: "echo-int32" });
    const overHttp = (await (await fetch(`${running.url}/v2/models/echo-int32`)).json()) as Message;
    expect(message).toMatchObject({
      name: "echo-int32",
      versions: overHttp["versions"],
      platform: overHttp["platform"],
    });
    const config = await client().call("ModelConfig", { name: "accumulate" });
    expect(config.message).toMatchObject({ config: { name: "accumulate", scheduling_choice: "sequence_batching" } });
  });
});

describe("LogSettings", () => {
  it("changes the log, and shows it", async () => {
    const settings = { log_verbose_level: { uint32_param: 1 } };
    const changed = await client().call("LogSettings", { settings });
    expect(changed.message).toMatchObject({ settings: { log_verbose_level: { uint32_param: 1 } } });
    const overHttp = async () => (await fetch(`${running.url}/v2/logging`)).json();
    await expect.poll(overHttp).toMatchObject({ log_verbose_level: 1 });
    const wrong = await client().call("LogSettings", { settings: { log_verbose_level: { string_param: "x" } } });
    expect(wrong.status).toBe(3);
  });
});

describe("ModelInfer", () => {
  it("answers raw tensors", async () => {
    const { message, trailers } = await client().call("ModelInfer", echo(7, { id: "a" }));
    expect(message).toMatchObject({
      model_name: "echo-int32",
      model_version: "1",
      id: "a",
      outputs: [{ name: "OUTPUT", datatype: "INT32", shape: ["1", "1"], contents: null }],
      raw_output_contents: [int32s(7)],
    });
    expect(trailers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("takes explicit contents", async () => {
    const { message } = await client().call("ModelInfer", {
      model_name: "echo-int32",
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], contents: { int_contents: [-5] } }],
    });
    expect(message?.["raw_output_contents"]).toEqual([int32s(-5)]);
  });

  it("refuses an unknown model in Triton's words", async () => {
    const answer = await client().call("ModelInfer", echo(1, { model_name: "none" }));
    expect(answer).toMatchObject({
      status: 5,
      details: "Request for unknown model: 'none' is not found",
      trailers: { "baton-code": "unknown_model" },
    });
  });

  it("runs the steps of a sequence", async () => {
    const step = (value: number, more: Parameters<typeof parameters>[0]): Message => ({
      model_name: "accumulate",
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
      raw_input_contents: [int32s(value)],
      parameters: parameters({ sequence_id: -3, ...more }),
    });
    const first = await client().call("ModelInfer", step(1, { sequence_start: true }));
    expect(first.details).toBe("");
    const second = await client().call("ModelInfer", step(2, { sequence_end: true }));
    // The model's second output is its sequence's id, whose 64 bits are those that the client sent.
    const id = Buffer.from(BigInt64Array.from([-3n]).buffer);
    expect(second.message?.["raw_output_contents"]).toEqual([int32s(3), id, int32s(1)]);
    expect(second.message?.["parameters"]).toMatchObject({ sequence_step: { int64_param: "2" } });
  });
});
