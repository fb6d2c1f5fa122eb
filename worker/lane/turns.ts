/**
 * The turns of models with preferred batch sizes and a delay. If all idle workers read such a
 * model, each would get a few requests of a batch, and all would wait out the delay. So one worker
 * at a time reads the model, until it has a batch: it has the model's turn, and the others wait for
 * the turn. A turn that is lost or held twice does no harm, because requests belong to the worker
 * that has read them: batches come apart, or wait until a worker looks for requests without it.
 */
import type { Logger } from "pino";
import { laneKeys } from "#shared/queue/keys.js";
import { mendTurn } from "#shared/queue/work/read/mend-turn.js";
import { passTurn } from "#shared/queue/work/read/pass-turn.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { World } from "#shared/world.js";
import type { Source } from "./reader.js";

export interface TurnsSettings {
  readonly commands: RedisClient;
  readonly consumer: string;
  readonly world: World;
  readonly log: Logger;
}

/** How often the holder of a turn renews it, in ms. */
const RENEW_MS = 1_000;
/** How long a worker waits for a turn before it looks after the model without it, in ms. */
const LOOK_MS = 1_000;

export class Turns {
  readonly #settings: TurnsSettings;
  /** The turns that this worker has, each with the time of its last renewal. */
  readonly #held = new Map<Source, { readonly entry: string; readonly renewedAt: number }>();
  /** Since when this worker waits for the turn of a model, or has last looked without it. */
  readonly #waitingSince = new Map<Source, number>();
  /** Models of which the last read was full, so that there may be more than one batch. */
  readonly #deep = new Set<Source>();

  constructor(settings: TurnsSettings) {
    this.#settings = settings;
  }

  /**
   * Whether the reader should read for this model now. A worker whose threads are all busy leaves a
   * new batch to others, unless there are enough requests for it, too.
   */
  wants(source: Source): boolean {
    const { intake } = source;
    return intake.room() > 0 && (intake.gathering?.() !== "busy" || this.#deep.has(source));
  }

  /** Whether this worker may read the model: without turns every worker may. */
  mayRead(source: Source): boolean {
    return this.#held.has(source) || source.intake.gathering?.() === undefined;
  }

  /** Whether this worker has a turn that it should pass on. */
  isOver(source: Source): boolean {
    return this.#held.has(source) && (!this.wants(source) || source.intake.gathering?.() === undefined);
  }

  /** The stream that brings the model's turn. */
  keyOf({ lanes }: Source): string {
    const [[, lane] = []] = lanes;
    if (lane === undefined) throw new RangeError("a model has a lane");
    return laneKeys(lane).turn;
  }

  /** Notes a read of the model. @param isFull whether the read brought all that it asked for */
  read(source: Source, isFull: boolean): void {
    if (isFull) this.#deep.add(source);
    else this.#deep.delete(source);
  }

  /** @param entry the turn, which the reader has got */
  got(source: Source, entry: string): void {
    this.#held.set(source, { entry, renewedAt: this.#settings.world.now() });
    this.#waitingSince.delete(source);
  }

  /** Passes the turns on that are over, and renews the others. */
  async keep(): Promise<void> {
    const { world } = this.#settings;
    for (const [source, { entry, renewedAt }] of this.#held) {
      if (this.isOver(source)) this.#pass(source, entry);
      else if (world.now() - renewedAt >= RENEW_MS) {
        const renewed = await this.#replace(source, entry, "caller");
        if (renewed === undefined) this.#held.delete(source);
        else this.got(source, renewed);
      }
    }
  }

  /**
   * To be called after a wait that brought no turn. A holder that is gone or frozen would keep the
   * turn, so this worker mends the turn in time, and looks for requests without it.
   * @returns whether it is time to look
   */
  async isTimeToLook(source: Source): Promise<boolean> {
    const { commands, world } = this.#settings;
    const since = this.#waitingSince.get(source);
    if (since === undefined || world.now() - since >= LOOK_MS) this.#waitingSince.set(source, world.now());
    if (since === undefined || world.now() - since < LOOK_MS) return false;
    await mendTurn(commands, this.keyOf(source));
    return true;
  }

  /** Makes sure that there are turns at all. */
  async create(sources: readonly Source[]): Promise<void> {
    const shared = sources.filter(({ intake }) => intake.gathering?.() !== undefined);
    await Promise.all(shared.map((source) => mendTurn(this.#settings.commands, this.keyOf(source))));
  }

  /** After a lost reply, this worker does not know its turns. A turn that it has gets lost. */
  forget(): void {
    this.#held.clear();
  }

  passAll(): void {
    for (const [source, { entry }] of this.#held) this.#pass(source, entry);
  }

  /** The reader does not wait for this. */
  #pass(source: Source, entry: string): void {
    this.#held.delete(source);
    this.#replace(source, entry, "next").catch((error: unknown) => {
      this.#settings.log.debug({ error: String(error) }, "a turn could not be passed on; it gets lost");
    });
  }

  #replace(source: Source, entry: string, to: "next" | "caller"): Promise<string | undefined> {
    const { commands, consumer } = this.#settings;
    return passTurn(commands, this.keyOf(source), { consumer, entry, to });
  }
}
