/**
 * Loads and unloads models at a client's wish, for all workers of the fleet. The wish lies in
 * Redis; each worker follows it by a roll-out of its process, and the answer waits for the fleet.
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import { noteWish } from "#shared/queue/admission/note-wish.js";
import { takeBackWish } from "#shared/queue/admission/take-back-wish.js";
import type { ModelWish } from "#shared/queue/wish.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { askRedis, changeInRedis } from "../../admission/ask-redis.js";
import type { Client } from "../../admission/inference.js";
import { isExplicit, isInRepository, loadState, type FleetControl } from "../../fleet/control.js";
import type { Caller } from "../caller.js";
import { needOperator } from "./operators.js";

export interface RepositoryTerms {
  readonly redis: RedisClient;
  readonly fleet: { readonly control: FleetControl };
  /** Whether a proxy's header says whose a request is. */
  readonly hasTenantHeader: boolean;
}

/** How long an answer waits for the fleet, in ms. The workers go on without the client. */
const MOST_MS = 300_000;
/** Time between two looks at the fleet that the gateway knows, in ms. */
const EVERY_MS = 50;

export class RepositoryService {
  readonly #terms: RepositoryTerms;

  constructor(terms: RepositoryTerms) {
    this.#terms = terms;
  }

  /** Whether clients may load and unload models in this fleet. */
  get isExplicit(): boolean {
    return isExplicit(this.#terms.fleet.control);
  }

  /**
   * Resolves once a worker serves the model as asked.
   * @param config a ModelConfig as JSON in place of the model's own; undefined for the model's own
   * @throws InferenceError with the reason if no worker can load the model
   */
  async load(
    caller: Caller,
    model: string,
    config: string | undefined,
    client: Pick<Client, "hasLeft">,
  ): Promise<void> {
    const { redis, fleet } = this.#terms;
    this.#need(caller, model);
    if (!isInRepository(fleet.control, model)) throw failedLoad(model, "failed to poll from model repository");
    const wish: ModelWish = { isLoaded: true, ...(config !== undefined && { config }) };
    const noted = await changeInRedis(() => noteWish(redis, model, wish));
    const state = await this.#until(client, () => {
      const now = loadState(fleet.control, model, noted.number);
      return now.is === "pending" ? undefined : now;
    });
    if (state === undefined) throw fixedError("unavailable", "loading");
    if (state.is !== "failed") return;
    await askRedis(() => takeBackWish(redis, model, noted));
    throw failedLoad(model, state.reason);
  }

  /** Resolves once no worker serves the model, or the client has waited long enough. */
  async unload(caller: Caller, model: string, client: Pick<Client, "hasLeft">): Promise<void> {
    const { redis, fleet } = this.#terms;
    this.#need(caller, model);
    if (!isInRepository(fleet.control, model)) return;
    await changeInRedis(() => noteWish(redis, model, { isLoaded: false }));
    const isServed = () => fleet.control.workers.some(({ models }) => models.some(({ name }) => name === model));
    await this.#until(client, () => (isServed() ? undefined : true));
  }

  /** @throws InferenceError if the caller may not load models */
  #need(caller: Caller, model: string): void {
    needOperator(caller, this.#terms.hasTenantHeader);
    caller.needModel({ model, version: undefined });
  }

  /** @returns undefined if the time is over, or the client has left */
  async #until<T>(client: Pick<Client, "hasLeft">, look: () => T | undefined): Promise<T | undefined> {
    const until = performance.now() + MOST_MS;
    while (!client.hasLeft && performance.now() < until) {
      const seen = look();
      if (seen !== undefined) return seen;
      await delay(EVERY_MS);
    }
    return undefined;
  }
}

function failedLoad(model: string, reason: string): InferenceError {
  return new InferenceError("invalid_argument", `failed to load '${model}', ${reason}`);
}
