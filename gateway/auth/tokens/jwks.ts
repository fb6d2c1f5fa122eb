/**
 * The public keys of the issuer of tokens. A gateway reads them anew from time to time, and when a
 * token names a key that it does not know. While their place does not answer, the last keys stay
 * good for an hour, so that the issuer may be away for as long as a new version of it takes.
 */
import { readFile } from "node:fs/promises";
import {
  createLocalJWKSet,
  errors,
  type CryptoKey,
  type FlattenedJWSInput,
  type JWSHeaderParameters,
  type LocalJWKSet,
} from "jose";
import type { Logger } from "pino";
import { z } from "zod";
import { UnusableError } from "#shared/exit.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import type { JwksPlace } from "./settings.js";

export interface JwksSettings {
  readonly place: JwksPlace;
  /** Hears that the keys cannot be read. */
  readonly onFailure: (reason: string) => void;
  readonly log: Logger;
  readonly world?: World;
}

/** Keys that are older than this, in ms, are read anew. */
const FRESH_MS = 600_000;
/** Keys that are older than this, in ms, verify no token. */
const USABLE_MS = 3_600_000;
/** The shortest time between two reads, in ms, so that tokens with foreign keys cause no flood. */
const PAUSE_MS = 30_000;
/** The same while this gateway has no keys. */
const FIRST_PAUSE_MS = 1_000;
/** How long the place of the keys may take to answer, in ms. */
const PATIENCE_MS = 5_000;

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

/** The keys cannot be read, and there are none that are new enough. */
export class JwksAway extends Error {}

interface ReadKeys {
  readonly find: LocalJWKSet;
  readonly count: number;
  /** On the world's clock. */
  readonly at: number;
}

export class Jwks {
  readonly #settings: JwksSettings;
  readonly #world: World;
  #read: ReadKeys | undefined;
  #triedAt = -Infinity;
  #reading: Promise<boolean> | undefined;

  private constructor(settings: JwksSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
  }

  /**
   * Reads the keys once. A gateway starts although a URL does not answer.
   * @throws UnusableError if a file cannot be read
   */
  static async open(settings: JwksSettings): Promise<Jwks> {
    const opened = new Jwks(settings);
    if ((await opened.#readAgain()) || "url" in settings.place) return opened;
    throw new UnusableError(`BATON_JWT_JWKS names a file without a readable key set: ${settings.place.path}.`);
  }

  /** Reads the keys anew from time to time until `signal` aborts, also if no token comes. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(FRESH_MS, signal, this.#world);
      if (!signal.aborted && this.#age() >= FRESH_MS) await this.#readAgain();
    }
  }

  /**
   * Finds the key of a token, as `jwtVerify` of jose asks for it.
   * @throws JwksAway, or an error of jose if no key or several keys fit
   */
  readonly find = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    if (this.#age() > FRESH_MS) {
      const reading = this.#readAgain();
      // No token waits for newer keys while there are usable ones.
      if (this.#age() > USABLE_MS) await reading;
    }
    try {
      return await this.#findNow(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey && (await this.#readAgain())) return this.#findNow(header, token);
      throw error;
    }
  };

  async #findNow(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    const read = this.#read;
    if (read === undefined || this.#age() > USABLE_MS) throw new JwksAway();
    if (header.kid === undefined && read.count > 1) throw new errors.JWKSMultipleMatchingKeys();
    return read.find(header, token);
  }

  /** In ms; Infinity before the first read. */
  #age(): number {
    return this.#world.now() - (this.#read?.at ?? -Infinity);
  }

  /** @returns whether the keys are new now; false also if they were asked for a moment ago */
  #readAgain(): Promise<boolean> {
    const pauseMs = this.#read === undefined ? FIRST_PAUSE_MS : PAUSE_MS;
    if (this.#reading === undefined && this.#world.now() - this.#triedAt < pauseMs) return Promise.resolve(false);
    this.#reading ??= this.#readNow().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readNow(): Promise<boolean> {
    const { place, onFailure, log } = this.#settings;
    this.#triedAt = this.#world.now();
    try {
      const text = "url" in place ? await fetched(place.url) : await readFile(place.path, "utf8");
      const set = keySet.parse(JSON.parse(text));
      this.#read = {
        find: createLocalJWKSet(set),
        count: set.keys.length,
        at: this.#world.now(),
      };
      return true;
    } catch (error) {
      onFailure(error instanceof z.ZodError ? "it is no key set" : String(error));
      log.warn({ error: String(error) }, "the keys of the issuer of tokens cannot be read");
      return false;
    }
  }
}

async function fetched(url: URL): Promise<string> {
  const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(PATIENCE_MS) });
  if (answer.status !== 200) throw new Error(`the answer has status ${answer.status}`);
  return answer.text();
}
