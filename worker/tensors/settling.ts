/**
 * Settles the ends of requests while their model runs others, and lets the requests leave the
 * holdings.
 */
import { within } from "#shared/retry.js";
import type { Held } from "../lane/holdings.js";
import type { LaneContext } from "../lane/lane.js";
import { settle, settledTogether, type Settled } from "../lane/settle.js";
import type { RunLog } from "./iterate.js";

/** The message about commits with the fates `lost` and `already`. */
const REFUSED = "commits refused: another worker took the steps over, or an earlier call had committed them";

export class Settling {
  readonly #context: LaneContext;
  /** Undefined for a model that runs once for each request, and answers once. */
  readonly #runs: RunLog | undefined;
  /** Settlements that count towards the limit of `room`. */
  readonly #counted = new Set<Promise<unknown>>();
  /** All work that has to end before the lanes close. */
  readonly #unsettled = new Set<Promise<void>>();

  constructor(context: LaneContext, runs: RunLog | undefined) {
    this.#context = context;
    this.#runs = runs;
  }

  /**
   * A settlement that takes long in a Cluster belongs to a bucket whose master is away. That bucket
   * brings no new steps meanwhile, so the settlement stops counting after `patienceMs`.
   *
   * @returns a promise that resolves when all is settled, or after that time
   */
  begin(settled: readonly Settled[]): Promise<unknown> {
    const { settler, world } = this.#context;
    const done = this.track(this.#settleAll(settled));
    const counted: Promise<unknown> = within(settler.patienceMs, done, world).finally(() =>
      this.#counted.delete(counted),
    );
    this.#counted.add(counted);
    return counted;
  }

  /** Resolves when fewer settlements than this count. */
  async room(most: number): Promise<void> {
    while (this.#counted.size >= most) await Promise.race(this.#counted);
  }

  /** Lets the lanes wait for this work before they close. */
  track(work: Promise<void>): Promise<void> {
    const done: Promise<void> = work.finally(() => this.#unsettled.delete(done));
    this.#unsettled.add(done);
    return done;
  }

  /** Resolves when all is settled. */
  async all(): Promise<void> {
    while (this.#unsettled.size > 0) await Promise.all(this.#unsettled);
  }

  /**
   * Gives steps up for now. The worker tries them again in a while, unless another worker has them
   * by then.
   */
  leave(steps: readonly Pick<Held, "delivery">[]): void {
    const { holdings, world } = this.#context;
    holdings.leave(
      steps.map(({ delivery }) => delivery),
      world.now(),
    );
  }

  drop(steps: readonly Pick<Held, "delivery">[]): void {
    this.#context.holdings.drop(steps.map(({ delivery }) => delivery.key));
  }

  async #settleAll(settled: readonly Settled[]): Promise<void> {
    const groups = settledTogether(this.#context.settler, settled);
    await Promise.all(groups.map((some) => this.#settleAndDrop(some)));
  }

  async #settleAndDrop(settled: readonly Settled[]): Promise<void> {
    const { settler, log } = this.#context;
    try {
      const ends = (await this.#runs?.end(settled)) ?? settled;
      const { lost, already } = await settle(settler, ends);
      if (lost === 0) this.#runs?.forget(ends);
      if (lost + already > 0) log.warn({ lost, already }, REFUSED);
    } catch (error) {
      log.error({ steps: settled.length, error: String(error) }, "commit failed; the steps will run again");
      return this.leave(settled);
    }
    this.drop(settled);
  }
}
