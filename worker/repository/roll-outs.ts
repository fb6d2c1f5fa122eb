/**
 * A worker that asks its supervisor for a roll-out: a second process loads the models anew beside
 * this process, and takes its place. This process goes on if the second process cannot load a
 * model, and tells the fleet why.
 */
import type { Logger } from "pino";
import { registryKeys } from "#shared/queue/keys.js";
import { noteRefusal } from "#shared/queue/refusals.js";
import { readWish, type Wish } from "#shared/queue/wish.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import { tellSupervisor, type RollOutRefusal, type SupervisorMessage } from "../supervision/messages.js";

export interface RollOutSettings {
  readonly redis: RedisClient;
  readonly worker: string;
  /** The number of the wish that the worker obeys; undefined if it follows none. */
  readonly number: number | undefined;
  /** Whether the models must be loaded anew to obey this wish. */
  readonly isBehind: (wish: Wish) => boolean;
  readonly log: Logger;
}

/** How long the worker tries to note a refusal, or to read a wish, in ms. */
const BUDGET_MS = 20_000;

export class RollOuts {
  readonly #settings: RollOutSettings;
  /** The number of the wish for which the worker has asked last. */
  #asked: number;

  constructor(settings: RollOutSettings) {
    this.#settings = settings;
    this.#asked = settings.number ?? Infinity;
  }

  /**
   * Hears the supervisor from now on.
   * @param onRetire called once another process has taken the worker's place
   */
  listen(onRetire: () => void): void {
    process.on("message", (message: SupervisorMessage) => {
      if (message.says === "retire") onRetire();
      else void this.#goOn(message);
    });
  }

  /** @param number of the fleet's wish */
  wished(number: number): void {
    if (number <= this.#asked) return;
    this.#asked = number;
    void this.#compare();
  }

  /** The number also grows when a wish is taken back that this worker has never obeyed. */
  async #compare(): Promise<void> {
    const { redis, isBehind, log } = this.#settings;
    try {
      const wish = await retrying(() => readWish(redis), { budgetMs: BUDGET_MS });
      this.#asked = Math.max(this.#asked, wish.number);
      if (!isBehind(wish)) return;
    } catch (error) {
      log.warn({ error: String(error) }, "the fleet's wish could not be read");
    }
    this.ask("the models that clients want have changed");
  }

  ask(why: string): void {
    const { log } = this.#settings;
    if (process.send === undefined) log.warn({ why }, "the models cannot be loaded anew: the worker has no supervisor");
    else log.info({ why }, "the models are loaded anew in another process");
    void tellSupervisor({ says: "rollOut" });
  }

  async #goOn({ number, reason, failed }: RollOutRefusal): Promise<void> {
    const { redis, worker, log } = this.#settings;
    log.error({ reason, failed }, "the models could not be loaded anew; the worker goes on");
    // A process that died has not said which wish it read: it was this one, or a later one.
    const refusal = { number: number ?? (this.#asked === Infinity ? undefined : this.#asked), reason, failed };
    if (number !== undefined) this.#asked = Math.max(this.#asked, number);
    try {
      await retrying(() => noteRefusal(redis, worker, refusal), { budgetMs: BUDGET_MS });
    } catch (error) {
      log.warn({ error: String(error) }, "the fleet could not be told why");
    }
  }
}

/** Forgets why nobody could take the place of workers that are gone, or whose place is taken. */
export async function forgetRefusals(redis: RedisClient, replaced: string | undefined): Promise<void> {
  const noted = Object.keys(await redis.hgetall(registryKeys.refusals));
  if (noted.length === 0) return;
  const living = await redis.zmscore(registryKeys.workers, ...noted);
  const over = noted.filter((worker, i) => living[i] === null || worker === replaced);
  if (over.length > 0) await redis.hdel(registryKeys.refusals, ...over);
}
