/**
 * Event streams over a real socket: framing, events that leave together, slow readers, and readers
 * that are gone.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { openSse, type SseOptions, type SseStream } from "../../../gateway/http/sse.js";
import { endIfResumable } from "../../../gateway/http/stopping.js";

const patient = { heartbeatMs: 60_000, stallMs: 60_000 };
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

interface Meeting {
  readonly stream: SseStream;
  readonly outgoing: ServerResponse;
  readonly socket: Socket;
  /** Everything received so far. */
  readonly received: () => string;
  readonly until: (text: string) => Promise<void>;
  readonly closed: Promise<unknown>;
}

async function meet(options: Partial<SseOptions> = {}, reading = true, version = "1.1"): Promise<Meeting> {
  return new Promise((resolve) => {
    const http = createServer((_, outgoing) => {
      const stream = openSse(outgoing, { requestId: "r.0.1.m", timing: patient, ...options });
      resolve({ stream, outgoing, socket, received: () => text, until, closed });
    });
    server = http;
    let text = "";
    let socket: Socket;
    let closed: Promise<unknown>;
    const until = (wanted: string): Promise<void> =>
      new Promise((found) => {
        const look = (): void => {
          if (text.includes(wanted)) found();
          else socket.once("data", look);
        };
        look();
      });
    http.listen(0, "127.0.0.1", () => {
      socket = connect((http.address() as AddressInfo).port, "127.0.0.1", () =>
        socket.write(`GET / HTTP/${version}\r\nHost: h\r\n\r\n`),
      );
      socket.on("error", () => undefined);
      closed = new Promise((done) => socket.once("close", done));
      if (reading) socket.on("data", (piece) => (text += piece.toString("utf8")));
    });
  });
}

const bodyOf = (text: string): string =>
  text
    .slice(text.indexOf("\r\n\r\n") + 4)
    .split("\r\n")
    .filter((_, i) => i % 2 === 1)
    .join("");

it("frames events, their ids and names, and text of several lines", async () => {
  const { stream, received, until } = await meet({ headers: { "x-more": "1" } });
  expect(await stream.send({ id: 7, data: '{"a":"é"}' })).toBe(true);
  expect(await stream.send({ event: "error", data: "one\r\ntwo\nthree\rfour" })).toBe(true);
  stream.end();
  await until("0\r\n\r\n");
  expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-type: text\/event-stream\r\n/);
  expect(received()).toContain("baton-request-id: r.0.1.m\r\nx-more: 1\r\n");
  expect(bodyOf(received())).toBe(
    'id: 7\ndata: {"a":"é"}\n\nevent: error\ndata: one\ndata: two\ndata: three\ndata: four\n\n',
  );
  expect(await stream.send({ data: "late" })).toBe(false);
});

it("leaves its connection to the next request", async () => {
  const { stream, socket, received, until } = await meet();
  stream.add({ data: "é".repeat(20) });
  stream.end();
  await until("0\r\n\r\n");
  const first = received();
  expect(first).toContain(`\r\n\r\n30\r\ndata: ${"é".repeat(20)}\n\n\r\n0\r\n\r\n`);
  socket.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  await until(`${first}HTTP/1.1 200 OK`);
});

it("speaks plainly to a client of HTTP/1.0, and ends by closing", async () => {
  const { stream, received, closed } = await meet({}, true, "1.0");
  stream.addText("data: one\n\n");
  stream.addText("");
  stream.addText("data: two\n\n");
  stream.end();
  await closed;
  expect(received().split("\r\n\r\n")[1]).toBe("data: one\n\ndata: two\n\n");
});

it("hands all events of one turn to the socket in one write", async () => {
  const { stream, outgoing, until } = await meet();
  let writes = 0;
  const write = outgoing.write.bind(outgoing);
  outgoing.write = ((...args: Parameters<typeof write>) => {
    writes++;
    return write(...args);
  }) as typeof outgoing.write;
  for (let i = 0; i < 100; i++) await stream.send({ id: i, data: "x" });
  await until("id: 99");
  expect(writes).toBe(1);
});

it("lets a reader that takes nothing wait, bounded, and cuts it", async () => {
  const { stream, outgoing } = await meet({ timing: { heartbeatMs: 100, stallMs: 300 } }, false);
  const data = "x".repeat(1_000);
  let sent = 0;
  let held = 0;
  while (await stream.send({ data })) {
    sent++;
    held = Math.max(held, outgoing.writableLength);
  }
  expect(stream.signal.aborted).toBe(true);
  expect(sent).toBeGreaterThan(10);
  expect(held).toBeLessThan(100_000);
});

it("cuts a reader that does not take the end", async () => {
  const { stream, outgoing, socket } = await meet({ timing: { heartbeatMs: 50, stallMs: 150 } }, false);
  socket.pause();
  // The kernel takes megabytes before a write has to wait.
  for (let i = 0; i < 20; i++) outgoing.write(Buffer.alloc(1 << 20));
  stream.end();
  await new Promise((resolve) => outgoing.once("close", resolve));
  expect(stream.signal.aborted).toBe(true);
});

it("says something before a proxy takes silence for death", async () => {
  const { until, received } = await meet({ timing: { heartbeatMs: 30, stallMs: 60_000 } });
  await until(": \n\n");
  expect(bodyOf(received())).toMatch(/^: \n\n/);
});

it("notices that the reader has gone", async () => {
  const { stream, socket } = await meet();
  const aborted = new Promise((resolve) => stream.signal.addEventListener("abort", resolve, { once: true }));
  socket.destroy();
  await aborted;
  expect(await stream.send({ data: "x" })).toBe(false);
});

it("is ended with the gateway if its client can go on elsewhere, and held if not", async () => {
  const held = await meet();
  endIfResumable(held.outgoing);
  expect(await held.stream.send({ data: "still here" })).toBe(true);
  await held.until("still here");
  const { stream, outgoing, received, until } = await meet({ resumable: true });
  expect(await stream.send({ id: 1, data: "last" })).toBe(true);
  endIfResumable(outgoing);
  await until("0\r\n\r\n");
  expect(bodyOf(received())).toBe("id: 1\ndata: last\n\nretry: 500\n\n");
  expect([stream.signal.aborted, await stream.send({ data: "x" })]).toEqual([true, false]);
});
