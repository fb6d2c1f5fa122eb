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

/** Whether a worker has the model in its repository. */
export function isInRepository({ workers, lapsed }: FleetControl, model: string): boolean {
  return [...workers, ...lapsed].some(
    ({ models, obeys }) => hasName(models, model) || (obeys !== undefined && hasName(obeys.idle, model)),
  );
}

export type LoadState = { readonly is: "served" | "pending" } | { readonly is: "failed"; readonly reason: string };

/**
 * A model is served as asked if one worker serves it that has read the wish. The load has failed if
 * all workers have read the wish, and none serves the model.
 * @param number of the wish
 */
export function loadState({ workers, refusals }: FleetControl, model: string, number: number): LoadState {
  const obeying = workers.filter(({ obeys }) => obeys !== undefined);
  const done = obeying.filter(({ obeys }) => (obeys?.number ?? 0) >= number);
  if (done.some(({ models }) => hasName(models, model))) return { is: "served" };
  const refused = obeying.flatMap(({ worker }) => {
    const refusal = refusals.get(worker);
    return (refusal?.number ?? 0) >= number && refusal !== undefined ? [refusal] : [];
  });
  if (obeying.length === 0 || done.length + refused.length < obeying.length) return { is: "pending" };
  const failures = [...done, ...refused].flatMap(({ failed }) => failed.filter(({ name }) => name === model));
  const reason = failures[0]?.reason ?? refused[0]?.reason ?? "no worker serves it";
  return { is: "failed", reason };
}

function hasName(models: readonly { readonly name: string }[], model: string): boolean {
  return models.some(({ name }) => name === model);
}
