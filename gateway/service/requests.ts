/**
 * The operations on a request by its public id: read, read in pieces, status, cancel, detach. Every
 * gateway offers them for every request, even if another gateway admitted the request.
 */
import { errorKinds } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { detach } from "#shared/queue/admission/attend.js";
import { readTrace } from "#shared/queue/admission/note-trace.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { SpanIds } from "#shared/trace/context.js";
import { askRedis } from "../admission/ask-redis.js";
import { endRequest } from "../admission/end-request.js";
import { addressOf, findLog, isStream, unknownRequest } from "../requests/find-log.js";
import { readStatus, type RequestStatus } from "../requests/status.js";
import { Cursor } from "../stream/cursor.js";
import type { Relay } from "../stream/relay.js";
import type { StreamLog } from "../stream/stream-log.js";
import type { ModelDirectory, ModelName } from "../fleet/models.js";
import { openRequests, type OpenPage, type OpenState } from "../requests/open-requests.js";
import type { Caller } from "./caller.js";
import type { PageTerms } from "./page.js";

export interface RequestServiceSettings {
  readonly models: { readonly directory: ModelDirectory };
  /** How many buckets the deployment has. */
  readonly buckets: number;
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly relay: Relay;
  /** How long Redis keeps the outcome of a cancelled request, in ms. */
  readonly outcomeTtlMs: number;
}

export class RequestService {
  readonly #settings: RequestServiceSettings;

  constructor(settings: RequestServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Opens a reader of the request's records.
   * @param from the index of the first record to read
   * @throws InferenceError `unknown_request`, `ahead_of_log`, `resume_window_passed` or
   * `unavailable`
   */
  async open({ tenant }: Caller, id: string, from: number): Promise<Cursor> {
    return Cursor.open(this.#settings.relay, addressOf(tenant, id), from);
  }

  /**
   * Gives the log of a generator's request, without a check that the log still exists.
   * @throws InferenceError `unknown_request` if `id` is no id, `not_a_stream` or `unavailable`
   */
  async log({ tenant }: Caller, id: string): Promise<StreamLog> {
    return findLog(this.#settings, addressOf(tenant, id));
  }

  /** The model of a request with this id. @throws InferenceError `unknown_request` */
  modelOf({ tenant }: Caller, id: string): string {
    return addressOf(tenant, id).model;
  }

  /** @returns the span of a stream's admission; undefined if the stream was not sampled */
  async traceOf({ tenant }: Caller, id: string): Promise<SpanIds | undefined> {
    return readTrace(this.#settings.redis, addressOf(tenant, id)).catch(() => undefined);
  }

  /**
   * Lists the caller's requests for a model that have not ended, in no order. A request that is
   * open from the first page to the last is on at least one page.
   * @throws InferenceError `unknown_model`, `model_unavailable` or `unavailable`
   */
  async list(caller: Caller, name: ModelName, terms: PageTerms & { state: OpenState | undefined }): Promise<OpenPage> {
    caller.needModel(name);
    const model = this.#settings.models.directory.find(name.model, name.version);
    return openRequests(this.#settings, { ...terms, tenant: caller.tenant, model, version: name.version });
  }

  /** @throws InferenceError `unknown_request` or `unavailable` */
  async status({ tenant }: Caller, id: string): Promise<RequestStatus> {
    const settings = this.#settings;
    const address = addressOf(tenant, id);
    return askRedis(async () => readStatus(settings.redis, address, await isStream(settings, address)));
  }

  /**
   * Ends the request as cancelled, unless it has ended.
   * @returns the status of a request that had ended in another way; undefined if the request is
   * cancelled, now or before
   * @throws InferenceError `unknown_request` or `unavailable`
   */
  async cancel(caller: Caller, id: string): Promise<RequestStatus | undefined> {
    const address = addressOf(caller.tenant, id);
    const { outcomeTtlMs: ttlMs } = this.#settings;
    const { said } = await askRedis(async () => {
      const stream = await isStream(this.#settings, address);
      const ending = { code: "cancelled", message: errorKinds.cancelled.texts.byClient, ttlMs, stream } as const;
      return endRequest(this.#settings, address, ending, {
        counted: ({ ends, ms }) => ends.cancelled("deleted", ms),
      });
    });
    if (said === "unknown") throw unknownRequest();
    if (said === "given") return undefined;
    const ended = await this.status(caller, id);
    return ended.state === "cancelled" ? undefined : ended;
  }

  /**
   * Lets the request run to its end, even without a reader of its stream.
   * @throws InferenceError `unknown_request` or `unavailable`
   */
  async detach({ tenant }: Caller, id: string): Promise<void> {
    const address = addressOf(tenant, id);
    if ((await askRedis(() => detach(this.#settings.redis, address))) === "unknown") throw unknownRequest();
  }
}
