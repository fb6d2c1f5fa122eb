/** Wrong messages, wrong callers and wrong bytes: each costs its sender alone. */
import { gzipSync } from "node:zlib";
import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { once } from "node:events";
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { asMessage, GrpcClient, int32s, parameters, type Answer, type Message } from "./client.js";

const running = useFleet({
  models: ["echo-int32", "echo-fp16", "echo-bytes", "accumulate", "gen-mha"],
  direct: true,
  grpc: true,
  env: { BATON_MAX_BODY_BYTES: String(4 * 1024 * 1024) },
});
const opened: GrpcClient[] = [];
const target = (): string => running.fleet.gateways[0]?.grpc ?? "";
const client = (): GrpcClient => (opened[0] ??= new GrpcClient(target()));
afterAll(() => opened.forEach((one) => one.close()));

const INFER = "/inference.GRPCInferenceService/ModelInfer";
const input = (more: Message = {}): Message => ({ name: "INPUT", datatype: "INT32", shape: [1, 1], ...more });
const echo = (more: Message = {}): Message => ({
  model_name: "echo-int32",
  inputs: [input()],
  raw_input_contents: [int32s(1)],
  ...more,
});
const infer = (more: Message): Promise<Answer> => client().call("ModelInfer", echo(more));
const reserved =
  "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with " +
  "'triton_' are allowed: triton_enable_empty_final_response";

describe("a message that is refused", () => {
  it.each<[string, Message, number, string]>([
    [
      "contents beside raw contents",
      { inputs: [input({ contents: { int_contents: [1] } })] },
      3,
      "contents field must not be specified when using raw_input_contents for 'INPUT' for model 'echo-int32'",
    ],
    [
      "no contents",
      { raw_input_contents: [] },
      3,
      "unable to find data for input tensor 'INPUT' for model 'echo-int32' in request.",
    ],
    [
      "too many raw contents",
      { raw_input_contents: [int32s(1), int32s(2)] },
      3,
      "unexpected additional input data for model 'echo-int32'",
    ],
    [
      "the contents of another datatype",
      { inputs: [input({ contents: { fp32_contents: [1] } })], raw_input_contents: [] },
      3,
      "unexpected explicit tensor data for input tensor 'INPUT' for model 'echo-int32' of type 'FP32', expected datatype 'INT32'",
    ],
    [
      "a datatype that does not exist",
      { inputs: [input({ datatype: "INT33" })] },
      3,
      "invalid datatype for input INPUT",
    ],
    [
      "a version that is no number",
      { model_version: "x" },
      3,
      "failed to get model version from specified version string 'x'",
    ],
    [
      "a version that is not there",
      { model_version: "9" },
      5,
      "Request for unknown model: 'echo-int32' version 9 is not found",
    ],
    ["a reserved parameter", { parameters: parameters({ triton_mine: 1 }) }, 3, reserved],
    [
      "a parameter without a value",
      { parameters: { mine: {} } },
      3,
      "invalid value type for 'mine' parameter, expected bool_param, int64_param, string_param or double_param.",
    ],
    [
      "an unsigned id of a sequence",
      { model_name: "accumulate", parameters: { sequence_id: { uint64_param: "1" } } },
      3,
      "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
    ],
    [
      "a flag that is no boolean",
      { model_name: "accumulate", parameters: parameters({ sequence_id: 1, sequence_start: "yes" }) },
      3,
      "invalid value type for 'sequence_start' parameter, expected bool_param.",
    ],
    [
      "shared memory",
      { inputs: [input({ parameters: parameters({ shared_memory_region: "r" }) })] },
      12,
      "Client shared memory",
    ],
    [
      "a step without START",
      { model_name: "accumulate", parameters: parameters({ sequence_id: 5 }) },
      3,
      "must specify the START flag",
    ],
    ["a negative dimension", { inputs: [input({ shape: [-1, 1] })] }, 3, "has a dimension below 0"],
    ["a huge shape", { inputs: [input({ shape: ["4294967296", "4294967296"] })] }, 3, "is larger than the limit"],
    [
      "a resumption without a key",
      { parameters: parameters({ resume_after: 1 }) },
      3,
      "resume_after needs idempotency_key",
    ],
    ["a parameter that is no number", { parameters: { mine: { double_param: NaN } } }, 3, "must be a finite number"],
  ])("%s", async (_, more, status, text) => {
    const answer = await infer(more);
    expect(answer.status).toBe(status);
    expect(answer.details).toContain(text);
    expect((await infer({})).status).toBe(0);
  });

  it("garbage, and a message that is cut", async () => {
    for (const bytes of [
      Buffer.from("ffffffffffffffffffff", "hex"),
      Buffer.from("0a0561", "hex"),
      Buffer.from("00", "hex"),
    ]) {
      const answer = await client().callBytes(INFER, bytes);
      expect([answer.status, answer.details]).toEqual([3, "the message is no valid protocol buffer"]);
    }
  });

  it("never for a field of a later version, which is passed over", async () => {
    const unknown = Buffer.from("f83f01", "hex");
    const answer = await client().callBytes(INFER, Buffer.concat([asMessage("ModelInfer", echo()), unknown]));
    expect(answer.status).toBe(0);
  });

  it("a text that is cut inside a character, in a call and in a stream", async () => {
    const text = { name: "text_input", datatype: "BYTES", shape: [1, 1], contents: { bytes_contents: ["YQ=="] } };
    // The cut of the quoted value splits one of its characters.
    const message = {
      model_name: "gen-mha",
      inputs: [text],
      parameters: parameters({ max_tokens: "😀".repeat(80) }),
    };
    const answer = await client().call("ModelInfer", message);
    expect([answer.status, answer.details]).toEqual([3, expect.stringContaining("max_tokens")]);
    const stream = client().stream({ triton_grpc_error: "true" });
    stream.send(message);
    await stream.finish();
    expect((await infer({})).status).toBe(0);
  });

  it("a message to a control method that is larger than over HTTP", async () => {
    const path = "/inference.GRPCInferenceService/ServerLive";
    const field = Buffer.from([0x0a, 0x80, 0x80, 0x80, 0x01]);
    const answer = await client().callBytes(path, Buffer.concat([field, Buffer.alloc(2 * 1024 * 1024)]));
    expect([answer.status, answer.trailers["baton-code"]]).toEqual([8, "payload_too_large"]);
  });

  it("a million empty tensors, in little memory", async () => {
    const message = Buffer.alloc(2_000_000);
    for (let at = 0; at < message.length; at += 2) message[at] = 0x3a;
    const answer = await client().callBytes(INFER, message);
    expect([answer.status, answer.details]).toEqual([3, "the request has more than 1024 raw_input_contents"]);
  });

  it("a message over the limit, also once it is inflated", async () => {
    const large = await infer({ raw_input_contents: [Buffer.alloc(5 * 1024 * 1024)] });
    expect(large.status).toBe(8);
    const session = connectHttp2(`http://${target()}`);
    const stream = session.request({
      ":method": "POST",
      ":path": INFER,
      "content-type": "application/grpc",
      "grpc-encoding": "gzip",
      te: "trailers",
    });
    const zipped = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const head = Buffer.from([1, 0, 0, 0, 0]);
    head.writeUInt32BE(zipped.length, 1);
    stream.end(Buffer.concat([head, zipped]));
    const status = await statusOf(stream);
    expect(status).toBe("8");
    session.close();
  });

  it("an unknown method, and an unknown encoding", async () => {
    expect((await client().callBytes("/inference.GRPCInferenceService/None", Buffer.alloc(0))).status).toBe(12);
    expect((await client().callBytes("/other.Service/None", Buffer.alloc(0))).status).toBe(12);
  });

  it("metadata that is too large", async () => {
    const answer = await client().call("ServerLive", {}, { headers: { mine: "x".repeat(20_000) } });
    expect(answer).toMatchObject({ status: 3, details: "the request's head is larger than 16 KiB" });
  });
});

describe("a stream whose deadline passes", () => {
  it("ends with a code of its own", async () => {
    const session = connectHttp2(`http://${target()}`);
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelStreamInfer",
      "content-type": "application/grpc",
      "grpc-timeout": "100m",
      te: "trailers",
    });
    const [headers] = (await once(stream, "response")) as [Record<string, string>];
    expect([headers["grpc-status"], headers["baton-code"]]).toEqual(["4", "deadline_exceeded"]);
    session.destroy();
  });
});

describe("a deadline that is further away than a timer can wait", () => {
  it.each(["2592000S", "4294972S", "99999999H"])("of %s does not pass at once", async (timeout) => {
    const session = connectHttp2(`http://${target()}`);
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ServerLive",
      "content-type": "application/grpc",
      "grpc-timeout": timeout,
      te: "trailers",
    });
    stream.end(Buffer.alloc(5));
    expect(await statusOf(stream)).toBe("0");
    session.destroy();
  });

  it("holds neither a call nor a stream up", async () => {
    const deadlineMs = 30 * 86_400_000;
    expect((await client().call("ServerLive", {}, { deadlineMs })).status).toBe(0);
    const stream = client().stream({}, deadlineMs);
    await stream.finish();
    expect((await stream.ended).code).toBe(0);
  });
});

/** The status in the trailers, or in the head of an answer without a message. */
async function statusOf(stream: ReturnType<ReturnType<typeof connectHttp2>["request"]>): Promise<unknown> {
  let status: unknown;
  stream.on("response", (headers) => (status ??= headers["grpc-status"]));
  stream.on("trailers", (headers) => (status ??= headers["grpc-status"]));
  stream.resume();
  await once(stream, "close");
  return status;
}

describe("a connection", () => {
  it("that speaks HTTP/1 is closed, and others go on", async () => {
    const [host = "", port = ""] = target().split(":");
    const socket = connect(Number(port), host);
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    socket.resume();
    await once(socket, "close");
    expect((await infer({})).status).toBe(0);
  });

  it("that floods with pings is cut", async () => {
    const session = connectHttp2(`http://${target()}`);
    session.on("error", () => undefined);
    await once(session, "connect");
    while (!session.closed) {
      for (let i = 0; i < 50 && !session.destroyed; i++) session.ping(() => undefined);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await infer({})).status).toBe(0);
  });

  it("is told windows that do not slow large tensors down", async () => {
    const session = connectHttp2(`http://${target()}`);
    const [settings] = (await once(session, "remoteSettings")) as [
      { initialWindowSize: number; maxConcurrentStreams: number },
    ];
    expect(settings).toMatchObject({ initialWindowSize: 8 * 1024 * 1024, maxConcurrentStreams: 100 });
    // A connection gets its window with its first large message.
    expect(session.state.remoteWindowSize).toBe(65_535);
    const stream = session.request({ ":method": "POST", ":path": INFER, "content-type": "application/grpc" });
    stream.on("error", () => undefined);
    stream.write(Buffer.from([0, 0, 0x10, 0, 0, 1]));
    await expect.poll(() => session.state.remoteWindowSize).toBeGreaterThan(15 * 1024 * 1024);
    session.destroy();
  });

  it("has as many streams as it may, and the next one is refused", async () => {
    const session = connectHttp2(`http://${target()}`);
    await once(session, "remoteSettings");
    const path = "/inference.GRPCInferenceService/ModelStreamInfer";
    const open = () =>
      session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" });
    const streams = Array.from({ length: 101 }, open);
    for (const stream of streams) stream.on("error", () => undefined);
    // Node's client keeps the last back until a place is free.
    streams[0]?.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => streams.at(-1)?.pending).toBe(false);
    session.destroy();
    expect((await infer({})).status).toBe(0);
  });
});

describe("tensors", () => {
  it("of 16-bit floats come and go as raw bytes", async () => {
    const raw = Buffer.from([0x00, 0x3c]);
    const message = { model_name: "echo-fp16", inputs: [{ name: "INPUT", datatype: "FP16", shape: [1, 1] }] };
    const { message: answer } = await client().call("ModelInfer", { ...message, raw_input_contents: [raw] });
    expect(answer?.["raw_output_contents"]).toEqual([raw]);
  });

  it("of bytes come as raw bytes or as contents", async () => {
    const message = { model_name: "echo-bytes", inputs: [{ name: "INPUT", datatype: "BYTES", shape: [1, 1] }] };
    const raw = Buffer.from([2, 0, 0, 0, 0x61, 0x62]);
    const inRaw = await client().call("ModelInfer", { ...message, raw_input_contents: [raw] });
    expect(inRaw.message?.["raw_output_contents"]).toEqual([raw]);
    const [tensor] = message.inputs;
    const inContents = await client().call("ModelInfer", {
      ...message,
      inputs: [{ ...tensor, contents: { bytes_contents: [Buffer.from("ab")] } }],
    });
    expect(inContents.message?.["raw_output_contents"]).toEqual([raw]);
  });
});
