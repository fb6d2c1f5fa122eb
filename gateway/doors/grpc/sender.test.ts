import { EventEmitter } from "node:events";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import type { Exchange } from "./exchange.js";
import { StreamSender } from "./sender.js";

class Call extends EventEmitter {
  destroyed = false;
  readonly writableEnded = false;
  readonly written: (() => void)[] = [];

  write(_: Buffer, done: () => void): void {
    this.written.push(done);
  }
}

function open() {
  const call = new Call();
  const stream = call as unknown as ServerDuplexStream<Buffer, Buffer>;
  return { call, sender: new StreamSender(stream, { bytesOut: 0 } as Exchange) };
}

const MESSAGE = Buffer.alloc(600 * 1024);

async function isDone(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

it("counts a message until the connection has taken it", async () => {
  const { call, sender } = open();
  await sender.send(MESSAGE);
  expect(await isDone(sender.room())).toBe(true);
  await sender.send(MESSAGE);
  const third = sender.send(MESSAGE);
  const room = sender.room();
  expect([await isDone(third), await isDone(room), call.written.length]).toEqual([false, false, 2]);
  call.written[0]?.();
  expect([await isDone(third), call.written.length]).toEqual([true, 3]);
  call.written[1]?.();
  expect(await isDone(room)).toBe(true);
});

it("waits for nothing once the client has left", async () => {
  const { call, sender } = open();
  for (let i = 0; i < 2; i++) await sender.send(MESSAGE);
  const waiting = [sender.send(MESSAGE), sender.room()];
  call.destroyed = true;
  call.emit("close");
  await Promise.all(waiting);
  expect(call.written.length).toBe(2);
});
