/**
 * Ends everything that clients have open under a key, once the key is good no longer: streams,
 * WebSockets, long polls, uploads. One loop looks for all of them, and looks at the keys only after
 * a change of some key or when one expires. So a stream that is open costs two entries of a set.
 */
import type { Logger } from "pino";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { faultOf } from "./owner/fault.js";
import type { KnownKeys } from "./known-keys.js";
import type { KnownKey } from "./owner/records.js";

/** @param fault why the key is good no longer */
export type EndReader = (fault: InferenceError) => void;

export interface OpenReadersSettings {
  readonly keys: Pick<KnownKeys, "version" | "now" | "peek" | "readAgain">;
  readonly world?: World;
  readonly log: Logger;
}

/** Interval of the looks, in ms. Changes come to a gateway once a second. */
const LOOK_EVERY_MS = 500;

export class OpenReaders {
  readonly #settings: OpenReadersSettings;
  /** By the id of the key. */
  readonly #open = new Map<string, Set<EndReader>>();
  /** The state of the keys at the last look at all of them. */
  #version = 0;
  /** Redis ms at which the next of the keys expires. */
  #nextExpiry = Infinity;
  /** Keys to look at, whatever has changed. */
  readonly #unsure = new Set<string>();

  constructor(settings: OpenReadersSettings) {
    this.#settings = settings;
  }

  /**
   * @param end called once, when the key is good no longer
   * @returns a function to call when the client has left
   */
  add(id: string, end: EndReader): () => void {
    const ends = this.#open.get(id) ?? new Set();
    ends.add(end);
    this.#open.set(id, ends);
    const { keys } = this.#settings;
    const known = keys.peek(id);
    if (known === undefined || faultOf(known, keys.now()) !== undefined) this.#unsure.add(id);
    else this.#awaitExpiry(known);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#open.get(id) === ends) this.#open.delete(id);
    };
  }

  /** Looks at the keys until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { world = realWorld, log } = this.#settings;
    while (!signal.aborted) {
      try {
        await this.look();
      } catch (error) {
        log.debug({ error: String(error) }, "the keys of open streams cannot be looked up now");
      }
      await delay(LOOK_EVERY_MS, signal, world);
    }
  }

  /** @throws if Redis does not answer; then the next look asks again */
  async look(): Promise<void> {
    const { keys } = this.#settings;
    const isAll = keys.version !== this.#version || keys.now() >= this.#nextExpiry;
    const ids = [...(isAll ? this.#open.keys() : this.#unsure)].filter((id) => this.#open.has(id));
    this.#unsure.clear();
    if (isAll) {
      this.#version = keys.version;
      this.#nextExpiry = Infinity;
    }
    const missing: string[] = [];
    for (const id of ids) {
      const known = keys.peek(id);
      if (known === undefined) missing.push(id);
      else this.#judge(id, known);
    }
    if (missing.length === 0) return;
    for (const id of missing) this.#unsure.add(id);
    for await (const found of keys.readAgain(missing)) {
      for (const [id, known] of found) {
        this.#unsure.delete(id);
        this.#judge(id, known);
      }
    }
  }

  #judge(id: string, known: KnownKey | undefined): void {
    const fault =
      known === undefined ? fixedError("invalid_api_key", "usual") : faultOf(known, this.#settings.keys.now());
    if (fault !== undefined) {
      const ends = this.#open.get(id) ?? [];
      this.#open.delete(id);
      for (const end of ends) end(fault);
    } else if (known !== undefined) this.#awaitExpiry(known);
  }

  #awaitExpiry({ key }: KnownKey): void {
    this.#nextExpiry = Math.min(this.#nextExpiry, key.expiresAt ?? Infinity);
  }
}
