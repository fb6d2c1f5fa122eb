/** A client that does not read loses its stream after 30 s, and holds up nobody else. */
import { once } from "node:events";
import { connect } from "node:http2";
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { asMessage, GrpcClient, type Message } from "../../protocols/grpc/client.js";
import { framed } from "../../bench/load/grpc-connection.js";

const running = useFleet({ models: ["echo-bytes"], direct: true, grpc: true });
const BYTES = 1024 * 1024;

const echo = (bytes: number): Message => {
  const raw = Buffer.alloc(4 + bytes, "x");
  raw.writeUInt32LE(bytes);
  return {
    model_name: "echo-bytes",
    inputs: [{ name: "INPUT", datatype: "BYTES", shape: [1, 1] }],
    raw_input_contents: [raw],
  };
};

it("is cut, its requests are held back, and others go on", async () => {
  const target = running.fleet.gateways[0]?.grpc ?? "";
  const session = connect(`http://${target}`);
  session.on("error", () => undefined);
  const stream = session.request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelStreamInfer",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => undefined);
  // Nothing reads the stream, so HTTP/2's window of 64 KiB is all that comes.
  const message = framed(asMessage("ModelInfer", echo(BYTES)));
  let sent = 0;
  while (stream.write(message) && sent < 100) sent++;
  const client = new GrpcClient(target);
  const closed = once(stream, "close");
  expect((await client.call("ModelInfer", echo(3))).status).toBe(0);
  await closed;
  expect(stream.rstCode).not.toBe(0);
  expect((await client.call("ModelInfer", echo(3))).status).toBe(0);
  client.close();
  session.destroy();
}, 120_000);
