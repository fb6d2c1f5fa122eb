/**
 * The JetStream stream over the subjects of all requests and labels. Every gateway makes it where
 * it is missing, and sees when it starts that it is as its settings say. So of gateways with
 * different settings, as during a roll-out, the one that started last decides. Subjects are no
 * setting: whoever knows more of them adds them.
 */
import type { Logger } from "pino";
import { TOKEN_STREAM } from "#shared/capture/captured.js";
import { isNotFound, type Bus, type StreamConfig } from "#shared/nats/connect.js";
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
  /** Undefined in a process that is not told them: it only sees that no subject is missing. */
  readonly terms: CaptureTerms | undefined;
  readonly log: Logger;
}

/** A record that is published twice within this time is stored once, but this costs memory. */
const TWICE_MS = 30_000;
const NS_PER_MS = 1_000_000;
/** How often it is looked whether there is a new connection to NATS, which may have lost it. */
const LOOK_MS = 500;
/**
 * How often NATS is asked without that: a gateway of an earlier version may have set fewer
 * subjects.
 */
const ASK_MS = 60_000;

export class TokenStream {
  readonly #settings: TokenStreamSettings;
  /** Whether it was once as the settings say. */
  #wasSet = false;

  constructor(settings: TokenStreamSettings) {
    this.#settings = settings;
  }

  /** Makes it again whenever NATS may have lost it, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { bus, log } = this.#settings;
    let madeAt = 0;
    let askAgainAt = 0;
    let hasWarned = false;
    while (!signal.aborted) {
      const connection = bus.connections();
      if (bus.isUp() && (connection !== madeAt || performance.now() >= askAgainAt)) {
        try {
          await this.#make();
          madeAt = connection;
          askAgainAt = performance.now() + ASK_MS;
          hasWarned = false;
        } catch (error) {
          if (!hasWarned)
            log.warn({ error: String(error) }, "records cannot be captured: JetStream refuses the stream");
          hasWarned = true;
        }
      }
      await delay(LOOK_MS, signal);
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
      // Where another gateway makes it at the same time, both ask for the same, which is no fault.
      const made = { name: TOKEN_STREAM, subjects: [...ALL_TOKENS_SUBJECTS], max_consumers: terms.consumers };
      await streams.add({ ...made, ...limitsOf(terms) });
      log.info({ ttlMs: terms.ttlMs, bytes: terms.bytes }, "records are captured");
      this.#wasSet = true;
      return;
    }
    // Those of a later version are left as they are.
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
