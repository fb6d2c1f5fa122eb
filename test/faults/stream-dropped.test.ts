/**
 * Streams that are opened and dropped before their first record. The grace period is set to
 * minutes: nothing here ends by itself.
 */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StreamAsk } from "../streams/ask.js";
import { Reader } from "../streams/reader.js";
import { sendAndLeave } from "../streams/leaving.js";
import { submissionOf, submitInBackground } from "../streams/submission.js";
import { startFleet, type Fleet } from "../setup/fleet.js";
import type { Proxy } from "../setup/proxy.js";
import { nth } from "./pace.js";
import { streamScale } from "./stream-scale.js";

const MODEL = "gen-cheap";
const GRACE_MS = 600_000;
const SLOTS = 16;
const DROPPED = 3_000;
const QUEUED = 1_000;
const PATIENCE_MS = 60_000;
const { timeoutMs } = streamScale;

let fleet: Fleet;
beforeAll(async () => {
  const env = { BATON_RECONNECT_GRACE_MS: String(GRACE_MS), BATON_GENERATOR_SLOTS: String(SLOTS) };
  fleet = await startFleet({ gateways: 1, workers: 1, models: [MODEL], env });
  await fleet.whenServing();
  // At most eight iterations to a round trip: a stream of thousands of tokens outlasts the test.
  fleet.lines.workerRedis.delay(40);
}, timeoutMs);
afterAll(() => fleet.dispose());

const url = () => nth(fleet.urls, 0);
const endless: StreamAsk = {
  name: "endless",
  model: MODEL,
  prompt: "over and over",
  parameters: { max_tokens: 60_000, temperature: 1, ignore_eos: true, seed: 1 },
};

async function lane(): Promise<{ queued: number; running: number }> {
  const answer = await fetch(`${url()}/v2/fleet`);
  const { models } = (await answer.json()) as { models: { queued: number; running: number }[] };
  return nth(models, 0);
}

/** What the lane is when the condition holds, or when the patience ends. */
async function laneWhen(condition: (lane: { queued: number; running: number }) => boolean) {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const { queued, running } = await lane();
    if (condition({ queued, running }) || performance.now() > giveUpAt) return { queued, running };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A connection on which a stream has been asked for, and nothing is read. */
async function open(ask: StreamAsk): Promise<Socket> {
  const { hostname, port } = new URL(url());
  const { path, body } = submissionOf(ask, "completions");
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => undefined); // it is dropped either way
  await new Promise((resolve) => socket.once("connect", resolve));
  const head = [`POST ${path} HTTP/1.1`, `Host: ${hostname}`, `Content-Length: ${Buffer.byteLength(body)}`];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  return socket;
}

/** @returns ends the streams that have them. */
async function takeAllSlots(): Promise<() => Promise<void>> {
  const ids = await Promise.all(Array.from({ length: SLOTS }, () => submitInBackground(url(), endless)));
  const readers = ids.map((id) => new Reader(url(), id));
  await Promise.all(readers.map((reader) => reader.reach(1)));
  return async () => {
    await Promise.all(ids.map((id) => fetch(`${url()}/v2/requests/${id}`, { method: "DELETE" })));
    await Promise.all(readers.map(({ ended }) => ended));
  };
}

/** What the line held is lost, as in a cut, and the gateway reaches Redis again. */
async function healed(line: Proxy): Promise<void> {
  line.resetAll();
  line.heal();
  await expect.poll(async () => (await fetch(`${url()}/v2/fleet`)).status).toBe(200);
}

describe("streams that are dropped before their first record", () => {
  it(
    "leave the queue at once while every slot is taken, and the streams in the slots run on",
    async () => {
      const leave = await takeAllSlots();
      const sockets = await Promise.all(Array.from({ length: QUEUED }, () => open(endless)));
      expect(await laneWhen(({ queued }) => queued === QUEUED)).toEqual({ queued: QUEUED, running: SLOTS });
      const droppedAt = performance.now();
      for (const socket of sockets) socket.destroy();
      const after = await laneWhen(({ queued }) => queued === 0);
      console.log(`${QUEUED} dropped in the queue: ${JSON.stringify(after)}, ${seconds(droppedAt)} s later`);
      expect(after).toEqual({ queued: 0, running: SLOTS });
      await leave();
    },
    timeoutMs,
  );

  it(
    "leave the queue though Redis cannot be reached just then",
    async () => {
      const { gatewayRedis } = fleet.lines;
      const leave = await takeAllSlots();
      const sockets = await Promise.all(Array.from({ length: SLOTS }, () => open(endless)));
      expect(await laneWhen(({ queued }) => queued === SLOTS)).toEqual({ queued: SLOTS, running: SLOTS });
      gatewayRedis.blackHole("toServer", "toClient");
      const { connections } = gatewayRedis.counts;
      for (const socket of sockets) socket.destroy();
      // The gateway has given a command up and connects anew: its first tries to cancel have
      // failed.
      await expect.poll(() => gatewayRedis.counts.connections, { timeout: PATIENCE_MS }).toBeGreaterThan(connections);
      await healed(gatewayRedis);
      expect(await laneWhen(({ queued }) => queued === 0)).toEqual({ queued: 0, running: SLOTS });
      await leave();
    },
    timeoutMs,
  );

  it(
    "end if they were admitted and nobody could be told",
    async () => {
      const { gatewayRedis } = fleet.lines;
      const leave = await takeAllSlots();
      gatewayRedis.blackHole("toClient");
      const { path, body } = submissionOf(endless, "completions");
      const answer = await fetch(url() + path, { method: "POST", body });
      const { error } = (await answer.json()) as { error: { code: string } };
      expect([answer.status, error.code]).toEqual([503, "outcome_unknown"]);
      await healed(gatewayRedis);
      expect(await laneWhen(({ queued }) => queued === 0)).toEqual({ queued: 0, running: SLOTS });
      await leave();
    },
    timeoutMs,
  );

  it(
    "give their slots back at once: an honest one begins",
    async () => {
      const droppedAt = performance.now();
      await Promise.all(Array.from({ length: DROPPED }, () => sendAndLeave(url(), endless, "completions")));
      const id = await submitInBackground(url(), endless);
      const honest = new Reader(url(), id);
      await honest.reach(1);
      const begun = seconds(droppedAt);
      const after = await laneWhen(({ queued, running }) => queued === 0 && running === 1);
      console.log(`${DROPPED} dropped at once: an honest stream began after ${begun} s; ${JSON.stringify(after)}`);
      expect(after).toEqual({ queued: 0, running: 1 });
      await fetch(`${url()}/v2/requests/${id}`, { method: "DELETE" });
      await honest.ended;
    },
    timeoutMs,
  );
});

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1);
}
