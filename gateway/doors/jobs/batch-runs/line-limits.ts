/**
 * Limits the lines of a batch that are under way to the number that the workers of its models run
 * at once. More lines would bring no answer sooner, and would make all other requests in the queue
 * wait.
 */
import type { ServedModel } from "#shared/contract/announcement.js";

export interface LineLimitsSettings {
  /**
   * How many requests all workers of a model take at once; undefined if that number is not known.
   */
  readonly takenAtOnce: (model: ServedModel) => number | undefined;
  /** Whether clients wait for answers of a model. */
  readonly clientsWait: (model: string) => boolean;
}

/** How many lines of a batch may be under way while no line's model is known. */
const FIRST = 8;

/** The lines of one batch for one model. */
interface Lines {
  /** The model as of the newest line. */
  model: ServedModel;
  count: number;
}

export class LineLimits {
  readonly #settings: LineLimitsSettings;
  /** By batch and name of the model. */
  readonly #batches = new Map<string, Map<string, Lines>>();

  constructor(settings: LineLimitsSettings) {
    this.#settings = settings;
  }

  begun(batch: string, model: ServedModel): void {
    const models = this.#batches.get(batch) ?? new Map<string, Lines>();
    this.#batches.set(batch, models);
    models.set(model.name, { model, count: (models.get(model.name)?.count ?? 0) + 1 });
  }

  ended(batch: string, model: string): void {
    const models = this.#batches.get(batch);
    const lines = models?.get(model);
    if (models === undefined || lines === undefined) return;
    if (--lines.count === 0) models.delete(model);
    if (models.size === 0) this.#batches.delete(batch);
  }

  /**
   * Most lines of a batch. Counts only the models of lines under way, because the models of later
   * lines are not known.
   */
  mostOf(batch: string): number {
    const { takenAtOnce, clientsWait } = this.#settings;
    const models = this.#batches.get(batch);
    if (models === undefined) return FIRST;
    let most = 0;
    for (const { model } of models.values()) {
      const all = mostLines(takenAtOnce(model), clientsWait(model.name));
      most += Math.ceil(all / this.#sharing(model.name));
    }
    return most;
  }

  /** Batches with lines for the model. */
  #sharing(model: string): number {
    let count = 0;
    for (const models of this.#batches.values()) if (models.has(model)) count++;
    return count;
  }
}

/**
 * Most lines for a model: twice the number that workers take at once, so that no worker waits for
 * the next line. While clients wait, half of that number, so that a client's request finds a place
 * in the next batch of each worker.
 * @param takenAtOnce by all workers of a model; undefined if a worker does not announce its number
 */
export function mostLines(takenAtOnce: number | undefined, clientsWait: boolean): number {
  if (takenAtOnce === undefined) return Infinity;
  return Math.max(1, clientsWait ? Math.ceil(takenAtOnce / 2) : 2 * takenAtOnce);
}
