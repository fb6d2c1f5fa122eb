/**
 * Streams that clients open and drop before the first record. The grace period is ten minutes, so
 * no stream ends by itself.
 */
import { connect, type Socket } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import type { StreamAsk } from "../../support/streams/ask.js";
import { Reader } from "../../support/streams/reader.js";
import { sendAndLeave } from "../../support/streams/leaving.js";
import { submissionOf, submitInBackground } from "../../support/streams/front-doors.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil } from "../../support/until.js";
import type { Proxy } from "../../support/fleet/proxy.js";
import { nth, pause } from "../pace.js";
import { streamScale } from "../scale.js";

const MODEL = "gen-cheap";
const GRACE_MS = 600_000;
const SLOTS = 16;
/** How long one phase may take. A phase that takes longer fails under its name. */
const PATIENCE_MS = 50_000;
const { timeoutMs, dropped: DROPPED, droppedInQueue: QUEUED } = streamScale;

const env = { BATON_RECONNECT_GRACE_MS: String(GRACE_MS), BATON_GENERATOR_SLOTS: String(SLOTS) };
const served = useFleet({ models: [MODEL], env });
beforeAll(() => {
  // With 40 ms each way, a worker makes at most eight iterations in a round trip: a stream of
  // thousands of tokens outlasts the test.
  served.fleet.lines.workerRedis.delay(40);
});

const url = () => nth(served.fleet.urls, 0);
const endless: StreamAsk = {
  name: "endless",
  model: MODEL,
  prompt: "over and over",
  parameters: { max_tokens: 60_000, temperature: 1, ignore_eos: true, seed: 1 },
};

/** Undefined while the gateway does not know: it has lost Redis, or the machine is too busy. */
async function lane(): Promise<{ queued: number; running: number } | undefined> {
  const answer = await fetch(`${url()}/v2/fleet`, { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!answer.ok) return undefined;
  const { models } = (await answer.json()) as { models: { queued: number; running: number }[] };
  return nth(models, 0);
}

/** The state of the lane when the condition holds, or when the patience ends. */
async function laneWhen(condition: (now: { queued: number; running: number }) => boolean) {
  const holds = (now: Awaited<ReturnType<typeof lane>>) => now !== undefined && condition(now);
  const now = await readUntil(lane, holds, { patienceMs: PATIENCE_MS, everyMs: 50 });
  return now && { queued: now.queued, running: now.running };
}

/**
 * @throws Error that names the phase and the state of the lane if the phase takes longer than the
 * patience
 */
async function within<Value>(phase: string, settled: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const late = `${phase}: not done after ${PATIENCE_MS} ms`;
      lane().then((now) => reject(new Error(`${late}; ${JSON.stringify(now)}`)), reject);
    }, PATIENCE_MS);
  });
  try {
    return await Promise.race([settled, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}

/** A connection that has asked for a stream and reads nothing. */
async function open(ask: StreamAsk): Promise<Socket> {
  const { hostname, port } = new URL(url());
  const { path, body } = submissionOf(ask, "completions");
  const socket = connect({ host: hostname, port: Number(port) });
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.on("error", () => undefined); // the test drops the connection anyway
  const head = [`POST ${path} HTTP/1.1`, `Host: ${hostname}`, `Content-Length: ${Buffer.byteLength(body)}`];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  return socket;
}

/**
 * Takes every slot of the generator.
 * @returns a function that ends the streams in the slots
 */
async function takeAllSlots(): Promise<() => Promise<void>> {
  const submitted = Array.from({ length: SLOTS }, () => submitInBackground(url(), endless));
  const ids = await within("submitting", Promise.all(submitted));
  const readers = ids.map((id) => new Reader(url(), id));
  await within("taking the slots", Promise.all(readers.map((reader) => reader.reach(1))));
  return async () => {
    const cancelled = ids.map((id) => fetch(`${url()}/v2/requests/${id}`, { method: "DELETE" }));
    await within("cancelling", Promise.all(cancelled));
    await within("leaving the slots", Promise.all(readers.map(({ ended }) => ended)));
  };
}

/** Repeats, since a gateway under a load may refuse requests for a moment, and says so. */
async function submitUntilTaken(): Promise<string> {
  for (;;) {
    const id = await submitInBackground(url(), endless, "honest").catch((error: unknown) => {
      if (!String(error).includes("503")) throw error;
    });
    if (id !== undefined) return id;
  }
}

/**
 * Reads until there is a record, and repeats, since a gateway under a load may refuse this, too.
 */
async function readUntilBegun(id: string): Promise<Reader> {
  for (;;) {
    const reader = new Reader(url(), id);
    const isBegun = await reader.reach(1).then(
      () => true,
      (error: unknown) => {
        if (!String(error).includes('"status":503')) throw error;
        return false;
      },
    );
    if (isBegun) return reader;
  }
}

/**
 * Ends an outage as a cut does: the bytes on the line are lost. Resolves when the gateway reaches
 * Redis again.
 */
async function healed(line: Proxy): Promise<void> {
  line.resetAll();
  line.heal();
  await reached();
}

/** Resolves when the gateway reaches Redis. */
async function reached(): Promise<void> {
  await expect.poll(async () => (await fetch(`${url()}/v2/fleet`)).status, { timeout: PATIENCE_MS }).toBe(200);
}

describe("streams that are dropped before their first record", () => {
  it(
    "leave the queue at once while every slot is taken, and the streams in the slots run on",
    async () => {
      const leave = await takeAllSlots();
      const opened = Array.from({ length: QUEUED }, () => open(endless));
      const sockets = await within("connecting", Promise.all(opened));
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
      const { gatewayRedis } = served.fleet.lines;
      const leave = await takeAllSlots();
      const sockets = await Promise.all(Array.from({ length: SLOTS }, () => open(endless)));
      expect(await laneWhen(({ queued }) => queued === SLOTS)).toEqual({ queued: SLOTS, running: SLOTS });
      gatewayRedis.blackHole("toServer", "toClient");
      const { connections } = gatewayRedis.counts;
      for (const socket of sockets) socket.destroy();
      // The gateway has given a command up and connects anew: its first attempts to cancel have
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
      const { gatewayRedis } = served.fleet.lines;
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
    "are not admitted by a call that arrives when they were given up",
    async () => {
      const { gatewayRedis } = served.fleet.lines;
      const leave = await takeAllSlots();
      const stalled = gatewayRedis.stall();
      gatewayRedis.blackHole("toServer", "toClient");
      const { path, body } = submissionOf(endless, "completions");
      const answer = await fetch(url() + path, { method: "POST", body });
      const { error } = (await answer.json()) as { error: { code: string } };
      expect([answer.status, error.code]).toEqual([503, "outcome_unknown"]);
      expect(stalled.holds(endless.model)).toBe(true);
      gatewayRedis.heal();
      await reached();
      // The gateway has cancelled by now, unless it first makes the call that it gave up harmless.
      await pause(400);
      await stalled.deliver();
      expect(await laneWhen(({ queued }) => queued === 0)).toEqual({ queued: 0, running: SLOTS });
      await leave();
    },
    timeoutMs,
  );

  it(
    "give their slots back at once: an honest one begins",
    async () => {
      const droppedAt = performance.now();
      const dropped = Array.from({ length: DROPPED }, () => sendAndLeave(url(), endless, "completions"));
      await within("connecting and leaving", Promise.all(dropped));
      const id = await within("submitting", submitUntilTaken());
      const honest = await within("the honest one's first record", readUntilBegun(id));
      const begun = seconds(droppedAt);
      const after = await laneWhen(({ queued, running }) => queued === 0 && running === 1);
      console.log(`${DROPPED} dropped at once: an honest stream began after ${begun} s; ${JSON.stringify(after)}`);
      expect(after).toEqual({ queued: 0, running: 1 });
      await fetch(`${url()}/v2/requests/${id}`, { method: "DELETE" });
      await within("the honest one's end", honest.ended);
    },
    timeoutMs,
  );
});

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1);
}
