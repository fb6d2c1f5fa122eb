/**
 * The operations on a request by its public id: read, read in pieces, status, cancel, detach. Every
 * gateway offers them for every request, even if another gateway admitted the request. Each
 * operation takes the caller's tenant, because an id names a request only within its tenant.
 */
import { decodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { errorKinds, fixedError, type InferenceError } from "#shared/errors.js";
import { logKey } from "#shared/queue/keys.js";
import { readRecord } from "#shared/queue/pieces/outcome.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { detach } from "#shared/queue/admission/attend.js";
import { askRedis } from "../admission/ask-redis.js";
import { endRequest } from "../admission/end-request.js";
import { Cursor } from "../stream/cursor.js";
import { StreamLog } from "../stream/stream-log.js";
import type { Relay } from "../stream/relay.js";
import { readStatus, type RequestStatus } from "./status.js";

export interface RequestsSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly relay: Relay;
  /** How long Redis keeps the outcome of a cancelled request, in ms. */
  readonly outcomeTtlMs: number;
}

export class Requests {
  readonly #settings: RequestsSettings;

  constructor(settings: RequestsSettings) {
    this.#settings = settings;
  }

  /**
   * Opens a reader of the request's records.
   * @param from the index of the first record to read
   * @throws InferenceError `unknown_request`, `ahead_of_log`, `resume_window_passed` or
   * `unavailable`
   */
  open(tenant: string, id: string, from: number): Promise<Cursor> {
    return Cursor.open(this.#settings.relay, addressOf(tenant, id), from);
  }

  /**
   * Gives the log of a generator's request, without a check that the log still exists.
   * @throws InferenceError `unknown_request` if `id` is no id, `not_a_stream` or `unavailable`
   */
  async log(tenant: string, id: string): Promise<StreamLog> {
    const { redis, relay } = this.#settings;
    const address = addressOf(tenant, id);
    if (relay.models.isGenerator(address.model) !== true) {
      const isStream = async () => (await this.#isStream(address)) || (await readRecord(redis, address)) === undefined;
      if (!(await askRedis(isStream))) throw fixedError("not_a_stream", "usual");
    }
    return new StreamLog(relay, address);
  }

  /** @throws InferenceError `unknown_request` or `unavailable` */
  status(tenant: string, id: string): Promise<RequestStatus> {
    const address = addressOf(tenant, id);
    return askRedis(async () => readStatus(this.#settings.redis, address, await this.#isStream(address)));
  }

  /**
   * Ends the request as cancelled, unless it has ended.
   * @returns the status of a request that had ended in another way; undefined if the request is
   * cancelled, now or before
   * @throws InferenceError `unknown_request` or `unavailable`
   */
  async cancel(tenant: string, id: string): Promise<RequestStatus | undefined> {
    const address = addressOf(tenant, id);
    const { outcomeTtlMs: ttlMs } = this.#settings;
    const { said } = await askRedis(async () => {
      const stream = await this.#isStream(address);
      const ending = { code: "cancelled", message: errorKinds.cancelled.texts.byClient, ttlMs, stream } as const;
      return endRequest(this.#settings, address, ending);
    });
    if (said === "unknown") throw unknownRequest();
    if (said === "given") return undefined;
    const ended = await this.status(tenant, id);
    return ended.state === "cancelled" ? undefined : ended;
  }

  /**
   * Lets the request run to its end, even without a reader of its stream.
   * @throws InferenceError `unknown_request` or `unavailable`
   */
  async detach(tenant: string, id: string): Promise<void> {
    const address = addressOf(tenant, id);
    if ((await askRedis(() => detach(this.#settings.redis, address))) === "unknown") throw unknownRequest();
  }

  /**
   * Whether the request is a generator's. If the fleet no longer knows the model, Redis decides:
   * only a stream has readers or a log.
   */
  async #isStream(address: RequestAddress): Promise<boolean> {
    const { redis, relay } = this.#settings;
    const answer = relay.models.isGenerator(address.model);
    if (answer !== undefined) return answer;
    const [record, length] = await Promise.all([readRecord(redis, address), redis.llen(logKey(address))]);
    return record?.wanted === true || length > 0;
  }
}

export function unknownRequest(): InferenceError {
  return fixedError("unknown_request", "usual");
}

/** @throws InferenceError `unknown_request` if `id` is no id */
function addressOf(tenant: string, id: string): RequestAddress {
  const address = decodeRequestId(id, tenant);
  if (address === undefined) throw unknownRequest();
  return address;
}
