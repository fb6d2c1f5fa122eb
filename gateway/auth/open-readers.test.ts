import { beforeEach, describe, expect, it } from "vitest";
import { pino } from "pino";
import type { KnownKey } from "./owner/records.js";
import { OpenReaders } from "./open-readers.js";
import { keyRecord } from "./owner/records.js";

const hash = `hmac-sha256:${"0".repeat(64)}`;
const keyOf = (id: string, more: object = {}): KnownKey => ({
  key: keyRecord.parse({ id, tenant: "acme", hash, scopes: [], ...more }),
  tenant: undefined,
});
const [one, other] = ["000000000001", "000000000002"];

/** The keys that a gateway knows, and what it was asked. */
class Keys {
  version = 1;
  time = 1_000;
  readonly known = new Map<string, KnownKey>();
  readonly stored = new Map<string, KnownKey>();
  readonly asked: string[] = [];
  isAway = false;

  now(): number {
    return this.time;
  }

  peek(id: string): KnownKey | undefined {
    this.asked.push(`peek ${id}`);
    return this.known.get(id);
  }

  async *readAgain(ids: readonly string[]): AsyncGenerator<ReadonlyMap<string, KnownKey | undefined>, void> {
    this.asked.push(`read ${ids.join(" ")}`);
    await Promise.resolve();
    if (this.isAway) throw new Error("Redis is away");
    yield new Map(ids.map((id) => [id, this.stored.get(id)]));
  }

  /** A change that this gateway has heard of. */
  change(id: string, more: object): void {
    this.version++;
    this.known.delete(id);
    this.stored.set(id, keyOf(id, more));
  }
}

let keys: Keys;
let readers: OpenReaders;
let ended: string[];
const open = (id: string) => readers.add(id, ({ code }) => ended.push(`${id} ${code}`));
beforeEach(async () => {
  keys = new Keys();
  ended = [];
  for (const id of [one, other]) keys.known.set(id, keyOf(id));
  readers = new OpenReaders({ keys, log: pino({ level: "silent" }) });
  await readers.look();
});

describe("what is open under a key", () => {
  it("costs no look while no key changes", async () => {
    for (let i = 0; i < 100; i++) open(one);
    keys.asked.length = 0;
    await readers.look();
    expect(keys.asked).toEqual([]);
  });

  it("ends once its key is revoked, and nothing else does", async () => {
    const leave = open(one);
    open(one);
    open(other);
    leave();
    keys.change(one, { revokedAt: 900 });
    await readers.look();
    expect(ended).toEqual([`${one} revoked_api_key`]);
    await readers.look();
    expect(ended).toHaveLength(1);
  });

  it("ends when its key expires, without a change", async () => {
    keys.known.set(one, keyOf(one, { expiresAt: 2_000 }));
    open(one);
    keys.time = 1_999;
    await readers.look();
    expect(ended).toEqual([]);
    keys.time = 2_000;
    await readers.look();
    expect(ended).toEqual([`${one} expired_api_key`]);
  });

  it("ends if its key is gone, or was good no longer when it was opened", async () => {
    open(one);
    keys.known.delete(one);
    keys.version++;
    keys.known.set(other, keyOf(other, { revokedAt: 1 }));
    open(other);
    await readers.look();
    expect(ended.toSorted()).toEqual([`${one} invalid_api_key`, `${other} revoked_api_key`]);
  });

  it("stays while Redis does not answer, and ends afterwards", async () => {
    open(one);
    keys.change(one, { revokedAt: 900 });
    keys.isAway = true;
    await expect(readers.look()).rejects.toThrow("away");
    expect(ended).toEqual([]);
    keys.isAway = false;
    await readers.look();
    expect(ended).toEqual([`${one} revoked_api_key`]);
  });

  it("leaves nothing behind when its client leaves", async () => {
    open(one)();
    keys.change(one, { revokedAt: 900 });
    keys.asked.length = 0;
    await readers.look();
    expect([keys.asked, ended]).toEqual([[], []]);
  });
});
