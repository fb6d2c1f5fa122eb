/** A client that keeps back the rest of a body gains nothing by a key that ends meanwhile. */
import { createConnection, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { useKeyedFleet, type Key } from "./keyed.js";

/** Longer than a gateway goes by its first judgement, in ms. */
const HELD_MS = 1_200;
const fleet = useKeyedFleet({ models: ["echo-int32"], direct: true });

/** A body that does not fit into the parser on the socket. */
const large = JSON.stringify({
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 40_000], data: Array<number>(40_000).fill(7) }],
});

/** Sends all but the last byte of a request. */
async function begin(key: Key, path: string, body: string): Promise<Socket> {
  const socket = createConnection(Number(new URL(fleet.served.url).port), "127.0.0.1");
  await once(socket, "connect");
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key.text}\r\n`;
  socket.write(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body.slice(0, -1)}`);
  return socket;
}

async function statusOf(socket: Socket, rest: string): Promise<string> {
  const answer = once(socket, "data") as Promise<[Buffer]>;
  socket.write(rest);
  const [text] = await answer;
  socket.destroy();
  return text.toString("latin1").slice("HTTP/1.1 ".length, "HTTP/1.1 200".length);
}

const isRefused = async (key: Key): Promise<boolean> =>
  (await fetch(`${fleet.served.url}/v2/whoami`, { headers: key.headers })).status === 401;

describe("a body that its client keeps back", () => {
  it.each([
    ["makes no key", "/v2/keys", JSON.stringify({ name: "late", scopes: ["infer"] })],
    ["runs no model", "/v2/models/echo-int32/infer", large],
    ["submits no job", "/v2/models/echo-int32/jobs", JSON.stringify({ infer: JSON.parse(large) as object })],
  ])("%s once its key is revoked", async (_, path, body) => {
    const key = await fleet.make({ scopes: ["infer", "jobs", "admin"] });
    const socket = await begin(key, path, body);
    await fleet.keys.revoke(key.id);
    await Promise.all([until(() => isRefused(key)), pause(HELD_MS)]);
    expect(await statusOf(socket, body.slice(-1))).toBe("401");
  });

  it("does what it asks for while its key is good", async () => {
    const key = await fleet.make({ scopes: ["infer"] });
    const socket = await begin(key, "/v2/models/echo-int32/infer", large);
    await pause(HELD_MS);
    expect(await statusOf(socket, large.slice(-1))).toBe("200");
  });
});
