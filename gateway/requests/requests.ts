/** What can be done with a request by its public id, at any gateway, whoever admitted it. */
import { decodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { logKey, outcomeKey } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { isTransient, retrying } from "#shared/retry.js";
import { detach } from "../admission/attend.js";
import { endRequest } from "../admission/end.js";
import { Cursor } from "../stream/cursor.js";
import type { Relay } from "../stream/relay.js";
import { describe, readFacts, type Description } from "./status.js";

export interface RequestsSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly relay: Relay;
  /** How long the outcome of a request that was cancelled is kept. */
  readonly outcomeTtlMs: number;
}

/** How long one who asks waits for Redis. */
const BUDGET_MS = 2_000;

export class Requests {
  readonly #settings: RequestsSettings;

  constructor(settings: RequestsSettings) {
    this.#settings = settings;
  }

  /** @throws InferenceError `unknown_request`, `ahead_of_log`, `resume_window_passed` or `unavailable` */
  open(id: string, from: number): Promise<Cursor> {
    return Cursor.open(this.#settings.relay, addressOf(id), from);
  }

  /** @throws InferenceError */
  status(id: string): Promise<Description> {
    const address = addressOf(id);
    return asked(async () => describe(this.#settings.redis, address, await this.#isStream(address)));
  }

  /** @returns how it had ended before, unless that was by being cancelled. @throws InferenceError */
  async cancel(id: string): Promise<Description | undefined> {
    const address = addressOf(id);
    const { outcomeTtlMs: ttlMs } = this.#settings;
    const { said } = await asked(async () => {
      const stream = await this.#isStream(address);
      const ending = { code: "cancelled", message: "the request was cancelled", ttlMs, stream } as const;
      return endRequest(this.#settings, address, ending);
    });
    if (said === "unknown") throw unknownRequest();
    if (said === "given") return undefined;
    const ended = await this.status(id);
    return ended.state === "cancelled" ? undefined : ended;
  }

  /** The request runs to its end whether or not anybody reads. @throws InferenceError */
  async detach(id: string): Promise<void> {
    const address = addressOf(id);
    if ((await asked(() => detach(this.#settings.redis, address))) === "unknown") throw unknownRequest();
  }

  /** Nobody may know the model any more; then only a stream has readers or a log. */
  async #isStream({ lane, request }: RequestAddress): Promise<boolean> {
    const { redis, relay } = this.#settings;
    const known = relay.isStream(lane);
    if (known !== undefined) return known;
    const [{ wanted }, length] = await Promise.all([
      readFacts(redis, outcomeKey(lane, request)),
      redis.llen(logKey(lane, request)),
    ]);
    return wanted || length > 0;
  }
}

export function unknownRequest(): InferenceError {
  return new InferenceError("unknown_request", "no such request");
}

function addressOf(id: string): RequestAddress {
  const address = decodeRequestId(id);
  if (address === undefined) throw unknownRequest();
  return address;
}

async function asked<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await retrying(call, { budgetMs: BUDGET_MS });
  } catch (cause) {
    if (cause instanceof InferenceError || !isTransient(cause)) throw cause;
    throw new InferenceError("unavailable", "the request cannot be looked up now", { cause });
  }
}
