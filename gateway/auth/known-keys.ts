/**
 * The keys that this gateway has looked up. A gateway asks Redis about a key once, and then follows
 * the changes of all keys, with one small command a second. So a change holds at this gateway
 * within `staleMs`, and a request with a known key costs no call.
 */
import type { Logger } from "pino";
import type { z } from "zod";
import { fixedError } from "#shared/errors.js";
import { readChanges, readKeys, readTenants } from "#shared/queue/owners/owners.js";
import { RedisClock } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { remember } from "./owner/remember.js";
import {
  keyRecord,
  parseRecord,
  tenantRecord,
  type TenantRecord,
  type KnownKey,
  type KnownTenant,
} from "./owner/records.js";

export interface KnownKeysSettings {
  readonly redis: RedisClient;
  /** How long a change may stay unseen, in ms (`BATON_AUTH_CACHE_MS`). */
  readonly staleMs: number;
  /** How long known keys stay good while Redis is away, in ms (`BATON_AUTH_GRACE_MS`). */
  readonly graceMs: number;
  readonly world?: World;
  readonly log: Logger;
}

/** Most keys to remember; beyond it, the key that was asked for the longest ago goes. */
const MOST_KNOWN = 20_000;
/** Most tenants to remember for tokens. */
const MOST_TENANTS = 20_000;
/** Most ids without a key to remember. */
const MOST_UNKNOWN = 10_000;
/** While Redis answers a look-up, those that come within this time, in ms, are one call. */
const GATHER_MS = 5;
/** Most look-ups of a second. A client that guesses keys costs Redis no more. */
const MOST_LOOKS = 200;
/**
 * The shortest and the longest time, in ms, after which a look-up beyond them is refused. Without a
 * wait, a client that guesses takes all of the gateway's time for refusals. The times differ, or
 * guesses that came together would be refused together, and come together again.
 */
const REFUSED_AFTER_MS = [1_000, 3_000] as const;
/** Different times between these two. */
const REFUSAL_TIMES = 128;
/** Most look-ups that wait for their refusals. */
const MOST_WAITING = 10_000;
/** Keys that one call reads again. */
const READ_AT_ONCE = 500;
/** Time between two looks for changes, in ms; less if `staleMs` is short. */
const FOLLOW_MS = 1_000;

export class KnownKeys {
  readonly #settings: KnownKeysSettings;
  readonly #world: World;
  /** The key asked for last stands last. */
  readonly #known = new Map<string, KnownKey>();
  /** Tenants of tokens, which name no key. */
  readonly #tenants = new Map<string, KnownTenant>();
  /** Ids of keys that were known until a change. */
  readonly #wasKnown = new Set<string>();
  /** When each id without a key was looked up, on the world's clock, the longest ago first. */
  readonly #unknown = new Map<string, number>();
  /** Look-ups under way or about to be. */
  readonly #asked = new Map<string, Promise<KnownKey | undefined>>();
  #gathering: { readonly ids: string[]; readonly answer: Promise<ReadonlyMap<string, KnownKey>> } | undefined;
  /** Calls for look-ups that Redis has not answered. */
  #reading = 0;
  /** Look-ups that wait for their refusals. */
  #waiting = 0;
  /** The look-ups of this second. */
  #looks = { since: -Infinity, count: 0 };
  /** The place in the stream of changes; undefined before the first look. */
  #place: string | undefined;
  readonly #clock: RedisClock;
  /** When Redis last answered a look for changes, on the world's clock. */
  #followedAt = -Infinity;
  /** Changes with each change of a record that this gateway may know. */
  #version = 0;

  constructor(settings: KnownKeysSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
    this.#clock = new RedisClock(this.#world);
  }

  /** Changes when a key or tenant may have changed. */
  get version(): number {
    return this.#version;
  }

  /**
   * @returns undefined if there is no such key; a promise if Redis has to be asked
   * @throws InferenceError `unavailable` if Redis has been away for too long, or after seconds if
   * too many keys are looked up
   */
  find(id: string): KnownKey | undefined | Promise<KnownKey | undefined> {
    const now = this.#world.now();
    const known = this.#whileSure(this.#known.get(id));
    if (known !== undefined) {
      this.#known.delete(id);
      this.#known.set(id, known);
      return known;
    }
    const { staleMs } = this.#settings;
    const missedAt = this.#unknown.get(id);
    if (missedAt !== undefined && now - missedAt <= staleMs) return undefined;
    return this.#asked.get(id) ?? this.#ask(id, now);
  }

  /**
   * @returns a promise if Redis has to be asked
   * @throws InferenceError `unavailable`
   */
  tenant(name: string): KnownTenant | Promise<KnownTenant> {
    return this.#whileSure(this.#tenants.get(name)) ?? this.#readTenant(name);
  }

  /** @returns undefined if Redis has to be asked */
  peekTenant(name: string): KnownTenant | undefined {
    return this.#tenants.get(name);
  }

  /**
   * @param known as of the last look
   * @returns the same; undefined if there is none, so that Redis has to be asked
   * @throws InferenceError `unavailable` if Redis has been away for too long
   */
  #whileSure<K>(known: K | undefined): K | undefined {
    const silentMs = this.#world.now() - this.#followedAt;
    const { staleMs, graceMs } = this.#settings;
    if (known !== undefined && silentMs <= Math.max(staleMs, graceMs)) return known;
    if (silentMs > staleMs) throw fixedError("unavailable", "keys");
    return undefined;
  }

  async #readTenant(name: string): Promise<KnownTenant> {
    const version = this.#version;
    let text: string | undefined;
    try {
      [text] = await readTenants(this.#settings.redis, [name]);
    } catch (cause) {
      throw fixedError("unavailable", "keys", { cause });
    }
    const record = this.#parsed(tenantRecord, `tenant:${name}`, text);
    // A tenant whose record nobody can read may be suspended.
    if (text !== undefined && record === undefined) throw fixedError("unavailable", "keys");
    const known = { record };
    if (version === this.#version) remember(this.#tenants, name, known, MOST_TENANTS);
    return known;
  }

  /** @returns the key as of its last change; undefined if this gateway has to ask Redis */
  peek(id: string): KnownKey | undefined {
    return this.#known.get(id);
  }

  /**
   * Reads keys that were good once, so that no limit of guesses counts them.
   * @returns page by page, what there is of each key
   * @throws if Redis does not answer
   */
  async *readAgain(ids: readonly string[]): AsyncGenerator<ReadonlyMap<string, KnownKey | undefined>, void> {
    for (let i = 0; i < ids.length; i += READ_AT_ONCE) {
      const page = ids.slice(i, i + READ_AT_ONCE);
      const version = this.#version;
      const found = await this.#read(page);
      if (version === this.#version) for (const [id, known] of found) remember(this.#known, id, known, MOST_KNOWN);
      yield new Map(page.map((id) => [id, found.get(id)]));
    }
  }

  /** Follows the changes until `signal` aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { redis, staleMs, log } = this.#settings;
    const everyMs = Math.min(FOLLOW_MS, staleMs / 3);
    while (!signal.aborted) {
      try {
        if (redis.status === "ready") await this.#readChanges();
      } catch (error) {
        log.debug({ error: String(error) }, "the changes of keys cannot be read now");
      }
      await delay(everyMs, signal, this.#world);
    }
  }

  async #readChanges(): Promise<void> {
    const { redis } = this.#settings;
    for (let isMore = true; isMore;) {
      const begun = this.#world.now();
      const { names, place, isGap, isFull, now } = await readChanges(redis, this.#place);
      this.#clock.observe(now);
      this.#place = place;
      if (isGap) this.#forgetAll();
      else for (const name of names) this.#forget(name);
      isMore = isFull;
      // A change that came while Redis answered counts for the next look.
      if (!isMore) this.#followedAt = begun;
    }
  }

  /** Redis ms, as of the last look for changes. */
  now(): number {
    return this.#clock.toRedis(this.#world.now());
  }

  /** @param name of a changed record */
  #forget(name: string): void {
    this.#version++;
    const at = name.indexOf(":") + 1;
    const id = name.slice(at);
    if (name.startsWith("key:")) {
      this.#lookAgain(id);
      this.#unknown.delete(id);
      // An answer that is under way may be from before the change.
      this.#asked.delete(id);
      return;
    }
    this.#tenants.delete(id);
    for (const [known, { key }] of this.#known) if (key.tenant === id) this.#lookAgain(known);
    this.#asked.clear();
  }

  /** Forgets a record. The next look for it is no guess, so guesses cannot keep it away. */
  #lookAgain(id: string): void {
    if (!this.#known.delete(id)) return;
    this.#wasKnown.add(id);
    if (this.#wasKnown.size > MOST_KNOWN) this.#wasKnown.clear();
  }

  #forgetAll(): void {
    this.#version++;
    for (const id of this.#known.keys()) this.#lookAgain(id);
    this.#tenants.clear();
    this.#unknown.clear();
    this.#asked.clear();
  }

  #ask(id: string, now: number): Promise<KnownKey | undefined> {
    if (now - this.#looks.since >= 1_000) this.#looks = { since: now, count: 0 };
    if (!this.#wasKnown.has(id) && ++this.#looks.count > MOST_LOOKS) return this.#refuseSoon();
    const asked = this.#look(id).finally(() => {
      if (this.#asked.get(id) === asked) this.#asked.delete(id);
    });
    this.#asked.set(id, asked);
    return asked;
  }

  /** @throws InferenceError `unavailable` */
  async #refuseSoon(): Promise<never> {
    if (this.#waiting < MOST_WAITING) {
      const [least, most] = REFUSED_AFTER_MS;
      const share = (this.#looks.count % REFUSAL_TIMES) / REFUSAL_TIMES;
      this.#waiting++;
      await delay(least + share * (most - least), undefined, this.#world);
      this.#waiting--;
    }
    throw fixedError("unavailable", "keys");
  }

  async #look(id: string): Promise<KnownKey | undefined> {
    const version = this.#version;
    let found: ReadonlyMap<string, KnownKey>;
    try {
      found = await this.#gather(id);
    } catch (cause) {
      throw fixedError("unavailable", "keys", { cause });
    }
    const known = found.get(id);
    // A record that has changed meanwhile is good for this request, and is not remembered.
    if (version !== this.#version) return known;
    this.#wasKnown.delete(id);
    if (known === undefined) remember(this.#unknown, id, this.#world.now(), MOST_UNKNOWN);
    else remember(this.#known, id, known, MOST_KNOWN);
    return known;
  }

  /** Looks up this id at once, or with others if a look-up is under way. */
  #gather(id: string): Promise<ReadonlyMap<string, KnownKey>> {
    if (this.#gathering === undefined) {
      const ids: string[] = [];
      const wait = this.#reading === 0 ? Promise.resolve() : delay(GATHER_MS, undefined, this.#world);
      const answer = wait.then(() => {
        this.#gathering = undefined;
        this.#reading++;
        return this.#read(ids).finally(() => this.#reading--);
      });
      this.#gathering = { ids, answer };
    }
    this.#gathering.ids.push(id);
    return this.#gathering.answer;
  }

  async #read(ids: readonly string[]): Promise<ReadonlyMap<string, KnownKey>> {
    const { redis } = this.#settings;
    const texts = await readKeys(redis, ids);
    const keys = ids.flatMap((id, i) => this.#parsed(keyRecord, `key:${id}`, texts[i]) ?? []);
    const names = [...new Set(keys.map(({ tenant }) => tenant))];
    const found = await readTenants(redis, names);
    const tenants = new Map<string, TenantRecord | undefined>();
    for (const [i, name] of names.entries()) {
      const tenant = this.#parsed(tenantRecord, `tenant:${name}`, found[i]);
      // A tenant whose record nobody can read may be suspended, so its keys let nobody in.
      if (found[i] === undefined || tenant !== undefined) tenants.set(name, tenant);
    }
    const good = keys.filter(({ tenant }) => tenants.has(tenant));
    return new Map(good.map((key) => [key.id, { key, tenant: tenants.get(key.tenant) }]));
  }

  /** A record that somebody has changed by hand counts as absent; the log names it. */
  #parsed<S extends z.ZodType>(schema: S, record: string, text: string | undefined): z.infer<S> | undefined {
    if (text === undefined) return undefined;
    const parsed = parseRecord(schema, text);
    if (parsed === undefined) this.#settings.log.error({ record }, "a record of a key or tenant cannot be read");
    return parsed;
  }
}
