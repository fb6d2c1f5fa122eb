/** Clients that flood HTTP/2 are sent away, and others are answered meanwhile. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { GrpcClient, int32s } from "./client.js";
import {
  callHead,
  CONTINUATION,
  END_HEADERS,
  END_STREAM,
  flood,
  frame,
  HEADERS,
  dismissed,
  headerBlock,
  hello,
  RST_STREAM,
} from "./frames.js";

const running = useFleet({ models: ["echo-int32"], direct: true, grpc: true });
const target = (): string => running.fleet.gateways[0]?.grpc ?? "";
let opened: GrpcClient | undefined;
const client = (): GrpcClient => (opened ??= new GrpcClient(target()));
afterAll(() => opened?.close());

const INFER = "/inference.GRPCInferenceService/ModelInfer";
const STREAM = "/inference.GRPCInferenceService/ModelStreamInfer";

async function isAnswered(): Promise<void> {
  const answer = await client().call("ModelInfer", {
    model_name: "echo-int32",
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
    raw_input_contents: [int32s(1)],
  });
  expect([answer.status, answer.details]).toEqual([0, ""]);
}

describe("a client is sent away", () => {
  const CANCEL = Buffer.from([0, 0, 0, 8]);

  it("that opens streams and resets them at once", async () => {
    // The other client is there before the flood.
    await isAnswered();
    const socket = await hello(target());
    let stream = 1;
    const flooding = flood(socket, () => {
      const frames: Buffer[] = [];
      for (let i = 0; i < 100; i++, stream += 2) {
        frames.push(frame(HEADERS, END_HEADERS, stream, callHead(STREAM)), frame(RST_STREAM, 0, stream, CANCEL));
      }
      return Buffer.concat(frames);
    });
    await isAnswered();
    await flooding;
    await isAnswered();
    expect(stream).toBeLessThan(1_000_000);
  });

  it("whose head never ends", async () => {
    const socket = await hello(target());
    socket.write(frame(HEADERS, END_STREAM, 1, callHead(INFER)));
    let sent = 0;
    const more = headerBlock(Array.from({ length: 100 }, (_, i) => [`x-${i}`, "a".repeat(100)]));
    const flooding = flood(socket, () => {
      sent += more.length;
      return frame(CONTINUATION, 0, 1, more);
    });
    await isAnswered();
    await flooding;
    expect(sent).toBeLessThan(64 << 20);
    await isAnswered();
  });

  it("whose head has a megabyte", async () => {
    const socket = await hello(target());
    const block = callHead(INFER, [["mine", "x".repeat(1 << 20)]]);
    const pieces: Buffer[] = [];
    for (let at = 0; at < block.length; at += 16_384) pieces.push(block.subarray(at, at + 16_384));
    const frames = pieces.map((piece, i) => {
      const flags = i === pieces.length - 1 ? END_HEADERS : 0;
      return i === 0 ? frame(HEADERS, END_STREAM + flags, 1, piece) : frame(CONTINUATION, flags, 1, piece);
    });
    socket.write(Buffer.concat(frames));
    expect(await dismissed(socket)).toBe("told");
    socket.destroy();
    await isAnswered();
  });
});

describe("a silent client", () => {
  const impatient = useFleet({
    models: ["echo-int32"],
    direct: true,
    grpc: true,
    env: { BATON_GRPC_KEEPALIVE_MS: "1000", BATON_GRPC_KEEPALIVE_TIMEOUT_MS: "1000" },
  });

  it("that answers no ping is cut, with its open stream", async () => {
    const socket = await hello(impatient.fleet.gateways[0]?.grpc ?? "");
    socket.write(frame(HEADERS, END_HEADERS, 1, callHead(STREAM)));
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.resume();
    await closed;
  });
});

it("a client that lets nothing be sent to it holds up nobody else", async () => {
  const session = connectHttp2(`http://${target()}`, { settings: { initialWindowSize: 0 } });
  session.on("error", () => undefined);
  const asked = session.request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ServerMetadata",
    "content-type": "application/grpc",
    te: "trailers",
  });
  asked.on("error", () => undefined);
  asked.end(Buffer.alloc(5));
  const [headers] = (await once(asked, "response")) as [Record<string, unknown>];
  expect(headers[":status"]).toBe(200);
  await isAnswered();
  session.destroy();
});
