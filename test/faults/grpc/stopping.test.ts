/**
 * A gateway that stops while its clients stay. It ends in time, and whatever it cuts has not been
 * given up: no client of these has left.
 */
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTcp, createServer, type AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { asMessage, GrpcClient, int32s, parameters, type Message } from "../../protocols/grpc/client.js";
import { framed } from "../../bench/load/grpc-connection.js";

// The worker is frozen for a while, and must not be buried meanwhile.
const running = useFleet({
  models: ["accumulate", "echo-bytes"],
  gateways: 3,
  direct: true,
  grpc: true,
  leaseMs: 60_000,
  env: { BATON_DRAIN_MS: "500", BATON_LINGER_MS: "0" },
});

const step = (sequence: number, value: number, given: Parameters<typeof parameters>[0] = {}): Message => ({
  model_name: "accumulate",
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(value)],
  parameters: parameters({ sequence_id: sequence, ...given }),
});

function echo(bytes: number): Message {
  const raw = Buffer.alloc(4 + bytes, "x");
  raw.writeUInt32LE(bytes);
  const inputs = [{ name: "INPUT", datatype: "BYTES", shape: [1, 1] }];
  return { model_name: "echo-bytes", inputs, raw_input_contents: [raw] };
}

const UNAVAILABLE = 14;

/** A way to the gateway that reads nothing more from it once it is stalled. */
async function stallingWay(target: string) {
  const [host = "", port = ""] = target.split(":");
  const upstream = connectTcp(Number(port), host);
  const server = createServer((socket) => {
    socket.pipe(upstream).pipe(socket);
    socket.on("error", () => undefined);
  }).listen(0, "127.0.0.1");
  upstream.on("error", () => undefined);
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stall: () => upstream.unpipe().pause(),
    close: () => server.close(),
  };
}

it("ends in time, although a client reads nothing more and ends none of its streams", async () => {
  const [gateway] = running.fleet.gateways;
  const way = await stallingWay(gateway?.grpc ?? "");
  const session = connect(way.url, { settings: { initialWindowSize: 2 ** 30 } });
  session.on("error", () => undefined);
  await once(session, "connect");
  session.setLocalWindowSize(2 ** 30);
  const [idle, halfSent, unread] = Array.from({ length: 3 }, () => {
    const path = "/inference.GRPCInferenceService/ModelStreamInfer";
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
    return stream.on("error", () => undefined).on("data", () => undefined);
  });
  halfSent?.write(Buffer.from([0, 0, 0, 1, 0, 7]));
  for (const stream of [idle, unread]) {
    stream?.write(framed(asMessage("ModelInfer", echo(1))));
    await once(stream ?? session, "response");
  }
  way.stall();
  // More than the kernel takes.
  for (let i = 0; i < 32; i++) unread?.write(framed(asMessage("ModelInfer", echo(1024 * 1024))));
  const answered = async () => {
    const stats = await fetch(`${running.fleet.urls[1]}/v2/models/echo-bytes/stats`);
    return ((await stats.json()) as { model_stats: { inference_count: number }[] }).model_stats[0]?.inference_count;
  };
  await expect.poll(answered, { timeout: 20_000 }).toBeGreaterThan(4);
  expect(await gateway?.member.terminate()).toMatchObject({ code: 0 });
  session.destroy();
  way.close();
});

it("leaves the steps that it cuts in the queue, and their sequences go on", async () => {
  const { gateways, workers } = running.fleet;
  const [, stopping, other] = gateways;
  const [client, after] = [new GrpcClient(stopping?.grpc ?? ""), new GrpcClient(other?.grpc ?? "")];
  const ids = { grpc: 51, plain: 52, node: 53, stream: 54 };
  for (const id of Object.values(ids)) {
    expect((await after.call("ModelInfer", step(id, 1, { sequence_start: true }))).status).toBe(0);
  }
  workers[0]?.freeze();
  const post = (id: number, headers: Record<string, string>) =>
    fetch(`${running.fleet.urls[1]}/v2/models/accumulate/infer`, {
      method: "POST",
      headers,
      body: JSON.stringify({
        parameters: { sequence_id: id },
        inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
      }),
    });
  const asked = Promise.allSettled([
    client.call("ModelInfer", step(ids.grpc, 1)),
    post(ids.plain, {}),
    post(ids.node, { cookie: "a=b" }),
  ]);
  const stream = client.stream();
  stream.send(step(ids.stream, 1));
  const waiting = async (model: string) => {
    const answer = await fetch(`${running.fleet.urls[2]}/v2/models/${model}/requests`);
    return ((await answer.json()) as { requests: unknown[] }).requests.length;
  };
  await expect.poll(() => waiting("accumulate")).toBe(4);
  const stopped = stopping?.member.terminate();
  await expect.poll(() => fetch(`${running.fleet.urls[1]}/v2/health/live`).catch(() => "refused")).toBe("refused");
  // A stream that drains takes no further requests.
  stream.send(echo(3));
  expect(await stopped).toMatchObject({ code: 0 });
  expect((await stream.ended).code).toBe(UNAVAILABLE);
  expect(await waiting("echo-bytes")).toBe(0);
  await asked;
  workers[0]?.thaw();
  for (const id of Object.values(ids)) {
    const answer = await after.call("ModelInfer", step(id, 1));
    expect([answer.details, answer.message?.["raw_output_contents"]]).toMatchObject(["", [int32s(3), {}, {}]]);
  }
  client.close();
  after.close();
});
