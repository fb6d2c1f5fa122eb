/** The object store in NATS alone: reads from any byte on, two writers, and a NATS without it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MissingObject, StoreUnavailable } from "#shared/object-store.js";
import { NatsObjectStore } from "#shared/nats/object-store.js";
import { startBroker } from "../support/brokers/broker.js";
import { startNats, type NatsServer } from "../support/brokers/nats.js";
import { messagesIn, objectsIn, removeStores } from "./objects.js";

const CHUNK = 131_072;
let nats: NatsServer;
let store: NatsObjectStore;
const storeAt = (url: string) => new NatsObjectStore({ url, name: "test", bucket: "files", replicas: 1 });
beforeAll(async () => {
  nats = await startNats();
  store = storeAt(nats.url);
});
afterAll(async () => {
  await store.close();
  await nats.dispose();
});

const text = Buffer.from(Array.from({ length: 5 * CHUNK + 17 }, (_, i) => (i * 31 + (i >> 9)) % 251));

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

async function read(name: string, from?: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of store.read(name, from)) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

describe("an object", () => {
  it("is read from any byte on, also where others wrote between its chunks", async () => {
    await Promise.all([
      store.put("file-a", inPieces(text, 10_000)),
      store.put("batch_1/o.1", inPieces(text, 77_777)),
      store.put("file-b", inPieces(text.subarray(0, CHUNK), CHUNK)),
    ]);
    for (const from of [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, text.length - 1, text.length, text.length + 5]) {
      expect((await read("file-a", from)).equals(text.subarray(from)), String(from)).toBe(true);
      expect((await read("batch_1/o.1", from)).equals(text.subarray(from)), String(from)).toBe(true);
    }
    expect((await read("file-b")).equals(text.subarray(0, CHUNK))).toBe(true);
    expect((await objectsIn(nats.url)).map(({ name }) => name).sort()).toEqual(["batch_1/o.1", "file-a", "file-b"]);
  });

  it("is replaced as a whole, and removed as a whole", async () => {
    await store.put("file-a", inPieces(text.subarray(9), 10_000));
    expect((await read("file-a")).equals(text.subarray(9))).toBe(true);
    for (const name of ["file-a", "file-b", "batch_1/o.1", "file-never"]) await store.remove(name);
    await expect(read("file-a")).rejects.toThrow(MissingObject);
    expect(await messagesIn(nats.url)).toBe(0);
  });

  it("has one writer: the second one to begin takes it from the first, which fails", async () => {
    const other = storeAt(nats.url);
    let begun: () => void = () => undefined;
    let overtaken: () => void = () => undefined;
    const isBegun = new Promise<void>((resolve) => (begun = resolve));
    const isOvertaken = new Promise<void>((resolve) => (overtaken = resolve));
    const turned = Buffer.from(text).reverse();
    async function* first(): AsyncGenerator<Uint8Array> {
      yield text.subarray(0, 2 * CHUNK);
      begun();
      await isOvertaken;
      yield text.subarray(2 * CHUNK);
    }
    async function* second(): AsyncGenerator<Uint8Array> {
      yield turned.subarray(0, 2 * CHUNK);
      overtaken();
      yield turned.subarray(2 * CHUNK);
    }
    try {
      const losing = expect(store.put("file-c", first())).rejects.toThrow(StoreUnavailable);
      await isBegun;
      await other.put("file-c", second());
      await losing;
      expect((await read("file-c")).equals(turned)).toBe(true);
    } finally {
      await store.remove("file-c");
      await other.close();
    }
  });
});

it("is made again where somebody has removed it", async () => {
  await store.put("file-a", inPieces(text, 10_000));
  await removeStores(nats.url);
  await expect(store.put("file-b", inPieces(text, 10_000))).rejects.toThrow(StoreUnavailable);
  await store.put("file-b", inPieces(text, 10_000));
  expect((await read("file-b")).equals(text)).toBe(true);
  await expect(read("file-a")).rejects.toThrow(MissingObject);
});

it("a NATS without JetStream, or none at all, is unavailable", async () => {
  const plain = await startBroker({
    name: "nats",
    command: "nats-server",
    argumentsFor: (port) => ["--addr", "127.0.0.1", "--port", String(port)],
    ready: /Server is ready/,
  });
  const none = storeAt(`nats://127.0.0.1:${plain.port}`);
  try {
    await expect(none.put("file-a", inPieces(text, 1_000))).rejects.toThrow(StoreUnavailable);
    await plain.kill();
    await expect(none.remove("file-a")).rejects.toThrow(StoreUnavailable);
  } finally {
    await none.close();
    await plain.dispose();
  }
});
