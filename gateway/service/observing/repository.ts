/**
 * Loads and unloads models at a client's wish, for all workers of the fleet. The wish lies in
 * Redis; each worker follows it by a roll-out of its process, and the answer waits for the fleet.
 */
import { randomUUID } from "node:crypto";
import { fixedError, InferenceError } from "#shared/errors.js";
import { noteWish } from "#shared/queue/admission/note-wish.js";
import { settleWish } from "#shared/queue/admission/settle-wish.js";
import { isModelName, type ModelWish } from "#shared/queue/wish.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay, retrying, within } from "#shared/retry.js";
import { changeInRedis } from "../../admission/ask-redis.js";
import type { Client } from "../../admission/inference.js";
import { dependentsOf } from "../../fleet/dependents.js";
import { isExplicit, loadState, unloadState, type FleetControl, type WishState } from "../../fleet/control.js";
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
/**
 * How long the gateway itself waits for the fleet, in ms, so that a wish that fails late is taken
 * back, too.
 */
const OUTCOME_MS = 1_800_000;
/** How long the gateway tries to note an outcome, in ms. */
const SETTLE_BUDGET_MS = 60_000;
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
    this.#need(caller, model);
    // Only workers know which models their folders have by now.
    if (!isModelName(model)) throw failed("load", model, "failed to poll from model repository");
    const wish = { isLoaded: true, ...(config !== undefined && { config }) };
    const state = await this.#wish(model, wish, loadState, client);
    if (state === undefined) throw fixedError("unavailable", "loading");
    if (state.is === "failed") throw failed("load", model, state.reason);
  }

  /**
   * Resolves once no worker serves the model.
   * @param withSteps whether to unload the models of an ensemble's steps, too
   * @throws InferenceError with the reason if a worker goes on to serve it
   */
  async unload(caller: Caller, model: string, withSteps: boolean, client: Pick<Client, "hasLeft">): Promise<void> {
    this.#need(caller, model);
    if (!isModelName(model)) return;
    const models = withSteps ? [model, ...dependentsOf(this.#terms.fleet.control.workers, model)] : [model];
    for (const one of models) this.#need(caller, one);
    const states = await Promise.all(models.map((one) => this.#wish(one, { isLoaded: false }, unloadState, client)));
    for (const [i, state] of states.entries()) {
      if (state === undefined) throw fixedError("unavailable", "unloading");
      if (state.is === "failed") throw failed("unload", models[i] ?? model, state.reason);
    }
  }

  /** @throws InferenceError if the caller may not load models */
  #need(caller: Caller, model: string): void {
    needOperator(caller, this.#terms.hasTenantHeader);
    caller.needModel({ model, version: undefined });
  }

  /** @returns what became of the wish; undefined if the time is over, or the client has left */
  async #wish(
    model: string,
    wish: ModelWish,
    look: typeof loadState,
    client: Pick<Client, "hasLeft">,
  ): Promise<WishState | undefined> {
    const { redis, fleet } = this.#terms;
    const id = randomUUID();
    const number = await changeInRedis(() => noteWish(redis, model, wish, id));
    const outcome = this.#outcome(model, number, () => look(fleet.control, model, number));
    const until = performance.now() + MOST_MS;
    while (!client.hasLeft && performance.now() < until) if (await within(EVERY_MS, outcome)) return outcome;
    return undefined;
  }

  /**
   * Waits for the fleet, whether or not the client does, and takes back a wish that has failed, so
   * that it does not hinder later ones. Never rejects.
   */
  async #outcome(model: string, number: number, look: () => WishState): Promise<WishState | undefined> {
    const until = performance.now() + OUTCOME_MS;
    while (performance.now() < until) {
      const state = look();
      if (state.is !== "pending") {
        const settled = { model, number, isFulfilled: state.is === "fulfilled" };
        // Without Redis the next wish for the model takes the place of this one.
        await retrying(() => settleWish(this.#terms.redis, settled), { budgetMs: SETTLE_BUDGET_MS }).catch(() => false);
        return state;
      }
      await delay(EVERY_MS);
    }
    return undefined;
  }
}

function failed(action: string, model: string, reason: string): InferenceError {
  return new InferenceError("invalid_argument", `failed to ${action} '${model}', ${reason}`);
}
