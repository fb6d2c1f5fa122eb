/**
 * What became of a client's wish to load or to unload a model, by the announcements of the workers
 * and the reasons why a worker goes on with the models that it has. Pure.
 */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Refusal } from "#shared/queue/refusals.js";

/** The fleet, as far as the loading of models is concerned. */
export interface FleetControl {
  /** The living workers whose place no other worker has taken. */
  readonly workers: readonly Announcement[];
  /** Workers that have gone lately and may be back soon. */
  readonly lapsed: readonly Announcement[];
  /** By the worker that goes on. */
  readonly refusals: ReadonlyMap<string, Refusal>;
}

/** Whether clients load and unload models. */
export function isExplicit({ workers, lapsed }: FleetControl): boolean {
  return [...workers, ...lapsed].some(({ obeys }) => obeys !== undefined);
}

export type WishState = { readonly is: "fulfilled" | "pending" } | { readonly is: "failed"; readonly reason: string };

/**
 * A model is served as asked if one worker serves it that has read the wish. The load has failed if
 * all workers have read the wish, and none serves the model.
 * @param number of the wish
 */
export function loadState({ workers, refusals }: FleetControl, model: string, number: number): WishState {
  const obeying = workers.filter(({ obeys }) => obeys !== undefined);
  const done = obeying.filter((worker) => hasRead(worker, number));
  if (done.some(({ models }) => hasName(models, model))) return { is: "fulfilled" };
  const refused = refusalsOf(obeying, refusals, number);
  if (obeying.length === 0 || done.length + refused.length < obeying.length) return { is: "pending" };
  const failures = [...done, ...refused].flatMap(({ failed }) => failed.filter(({ name }) => name === model));
  const reason = failures[0]?.reason ?? refused[0]?.reason ?? "no worker serves it";
  return { is: "failed", reason };
}

/**
 * A model is unloaded if no worker serves it. The unload has failed if all workers that serve the
 * model go on with it.
 * @param number of the wish
 */
export function unloadState({ workers, refusals }: FleetControl, model: string, number: number): WishState {
  const serving = workers.filter(({ models }) => hasName(models, model));
  if (serving.length === 0) return { is: "fulfilled" };
  const again = serving.filter((worker) => hasRead(worker, number));
  const refused = refusalsOf(serving, refusals, number);
  if (again.length + refused.length < serving.length) return { is: "pending" };
  return { is: "failed", reason: refused[0]?.reason ?? "it has been loaded again since" };
}

function hasRead({ obeys }: Announcement, number: number): boolean {
  return obeys !== undefined && obeys.number >= number;
}

/** Of workers that have not read the wish, and go on with the models that they have. */
function refusalsOf(
  workers: readonly Announcement[],
  refusals: FleetControl["refusals"],
  number: number,
): readonly Refusal[] {
  return workers.flatMap((one) => {
    const refusal = hasRead(one, number) ? undefined : refusals.get(one.worker);
    return refusal !== undefined && (refusal.number ?? 0) >= number ? [refusal] : [];
  });
}

function hasName(models: readonly { readonly name: string }[], model: string): boolean {
  return models.some(({ name }) => name === model);
}
