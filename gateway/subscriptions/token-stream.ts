/**
 * The JetStream stream over the subjects of all requests and labels. Every gateway makes the stream
 * if it is missing, and once after its start sets the stream's limits of age and bytes. So if
 * gateways have different settings, as during a roll-out, the gateway that started last decides.
 * Subjects are no setting: a process that knows more subjects adds these.
 */
import type { Logger } from "pino";
import { TOKEN_STREAM } from "#shared/capture/captured.js";
import { isNotFound, type StreamConfig } from "#shared/nats/client.js";
import type { Bus } from "#shared/nats/connect.js";
import { ALL_TOKENS_SUBJECTS } from "#shared/queue/keys.js";
import { delay } from "#shared/retry.js";

export interface CaptureTerms {
  readonly ttlMs: number;
  readonly bytes: number;
  /** Consumers of all tenants together. */
  readonly consumers: number;
}

export interface TokenStreamSettings {
  readonly bus: Bus;
  /** Undefined in a process without these settings, which only adds missing subjects. */
  readonly terms: CaptureTerms | undefined;
  readonly log: Logger;
}

/** JetStream stores a record once if it arrives twice within this time; more time costs memory. */
const TWICE_MS = 30_000;
const NS_PER_MS = 1_000_000;
/** How often to look for a new connection to NATS, which may have lost the stream meanwhile. */
const LOOK_MS = 500;
/**
 * How often to check the stream on the same connection, because a gateway of an earlier version may
 * have set fewer subjects.
 */
const ASK_MS = 60_000;
/**
 * How long the start of a gateway waits for the stream, in ms: JetStream captures no record that a
 * worker publishes before. Then the gateway starts all the same, because inference needs no NATS.
 */
export const START_PATIENCE_MS = 1_000;
/**
 * How long a request waits for the stream, in ms. Then the request asks JetStream all the same, and
 * its client gets the error.
 */
const PATIENCE_MS = 5_000;
/** How often a waiting request checks the stream, in ms. */
const SOON_MS = 20;

export class TokenStream {
  readonly #settings: TokenStreamSettings;
  /** Whether the stream has once had this process's limits. */
  #wasSet = false;
  /** The number of the connection to NATS at the last successful check. */
  #seenOver = 0;
  /** Time of the next check on the same connection, on `performance.now()`'s clock. */
  #askAgainAt = 0;
  /** Whether the log already says that JetStream refuses the stream. */
  #hasWarned = false;
  /** The check that is under way. */
  #looking: Promise<void> | undefined;

  constructor(settings: TokenStreamSettings) {
    this.#settings = settings;
  }

  /** Makes the stream again each time NATS may have lost it, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (!this.#isThere || performance.now() >= this.#askAgainAt) await this.#look();
      await delay(LOOK_MS, signal);
    }
  }

  /** Waits until the stream exists. After `patienceMs`, resolves without the stream. */
  async whenMade(patienceMs = PATIENCE_MS): Promise<void> {
    const giveUpAt = performance.now() + patienceMs;
    while (!this.#isThere && performance.now() < giveUpAt) {
      await this.#look();
      if (!this.#isThere) await delay(SOON_MS);
    }
  }

  get #isThere(): boolean {
    const { bus } = this.#settings;
    return bus.isUp() && bus.connections() === this.#seenOver;
  }

  /** Never throws. Callers during a check wait for that check. */
  #look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce().finally(() => (this.#looking = undefined)));
  }

  async #lookOnce(): Promise<void> {
    const { bus, log } = this.#settings;
    if (!bus.isUp()) return;
    const connection = bus.connections();
    try {
      await this.#make();
      this.#seenOver = connection;
      this.#askAgainAt = performance.now() + ASK_MS;
      this.#hasWarned = false;
    } catch (error) {
      if (!this.#hasWarned)
        log.warn({ error: String(error) }, "records cannot be captured: JetStream refuses the stream");
      this.#hasWarned = true;
    }
  }

  async #make(): Promise<void> {
    const { bus, terms, log } = this.#settings;
    const { streams } = await bus.jetStream();
    let config: StreamConfig;
    try {
      ({ config } = await streams.info(TOKEN_STREAM));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      if (terms === undefined) return;
      // If another gateway makes the stream at the same time, both ask for the same, which is no
      // fault.
      const made = { name: TOKEN_STREAM, subjects: [...ALL_TOKENS_SUBJECTS], max_consumers: terms.consumers };
      await streams.add({ ...made, ...limitsOf(terms) });
      log.info({ ttlMs: terms.ttlMs, bytes: terms.bytes }, "records are captured");
      this.#wasSet = true;
      return;
    }
    // Subjects of a later version stay as they are.
    const missing = ALL_TOKENS_SUBJECTS.filter((subject) => !config.subjects.includes(subject));
    if (missing.length > 0) {
      await streams.update(TOKEN_STREAM, { subjects: [...config.subjects, ...missing] });
      log.info({ missing }, "the capture of records has further subjects");
    }
    if (terms === undefined || this.#wasSet) return;
    const limits = limitsOf(terms);
    if (config.max_age !== limits.max_age || config.max_bytes !== limits.max_bytes) {
      await streams.update(TOKEN_STREAM, limits);
      const { ttlMs, bytes } = terms;
      log.info({ ttlMs, bytes }, "the capture of records was changed to these settings");
    }
    this.#wasSet = true;
  }
}

function limitsOf({ ttlMs, bytes }: CaptureTerms) {
  return {
    max_age: ttlMs * NS_PER_MS,
    max_bytes: bytes,
    duplicate_window: Math.min(TWICE_MS, ttlMs) * NS_PER_MS,
  };
}
