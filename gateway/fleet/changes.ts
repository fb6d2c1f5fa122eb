/** What has changed in the fleet between two looks, as events for people. Pure. */
import type { FleetDescription } from "./describe.js";
import type { VersionName } from "./totals.js";

/** A look at the fleet. */
export interface FleetLook {
  readonly fleet: FleetDescription;
  /** Requests of gone workers that others took over, of each version since ever. */
  readonly takeovers: readonly (VersionName & { readonly count: number })[];
  /** Whether a worker that is gone has left by itself. */
  readonly hasLeft: (worker: string) => boolean;
}

export type ChangeName =
  `worker.${"joined" | "lost" | "left"}` | "takeover" | `model.${"served" | "retired"}` | "dead.added" | "gone_back";

export interface Change {
  readonly event: ChangeName;
  readonly data: Readonly<Record<string, unknown>>;
}

export function changesBetween(before: FleetLook, now: FleetLook): Change[] {
  return [
    ...workersChanged(before, now),
    ...modelsChanged(before, now),
    ...takenOver(before, now),
    ...lost(before, now),
  ];
}

function workersChanged(before: FleetLook, now: FleetLook): Change[] {
  const named = ({ fleet }: FleetLook) => new Map(fleet.workers.map(({ name, host }) => [name, host]));
  const [were, are] = [named(before), named(now)];
  return [
    ...without(were, are).map(([worker, host]): Change => ({
      event: now.hasLeft(worker) ? "worker.left" : "worker.lost",
      data: { worker, host },
    })),
    ...without(are, were).map(([worker, host]): Change => ({ event: "worker.joined", data: { worker, host } })),
  ];
}

function modelsChanged(before: FleetLook, now: FleetLook): Change[] {
  const named = ({ fleet }: FleetLook) =>
    new Map(
      fleet.models.map(({ name, version, digest, set_aside: dead }) => [
        `${name}/${version}/${digest}`,
        { name, version, dead },
      ]),
    );
  const [were, are] = [named(before), named(now)];
  const dead = ({ fleet }: FleetLook) => new Map(fleet.models.map(({ name, set_aside: count }) => [name, count]));
  // Buckets without a server do not count, so that only looks at the same buckets compare.
  const areSame = JSON.stringify(before.fleet.unserved) === JSON.stringify(now.fleet.unserved);
  const deadBefore = areSame ? dead(before) : new Map<string, number>();
  return [
    ...without(are, were).map(([, { name, version }]): Change => ({
      event: "model.served",
      data: { model: name, version },
    })),
    ...without(were, are).map(([, { name, version }]): Change => ({
      event: "model.retired",
      data: { model: name, version },
    })),
    ...[...dead(now)].flatMap(([model, count]): Change[] => {
      const more = count - (deadBefore.get(model) ?? count);
      return more > 0 ? [{ event: "dead.added", data: { model, count: more } }] : [];
    }),
  ];
}

function takenOver(before: FleetLook, now: FleetLook): Change[] {
  const known = new Map(before.takeovers.map(({ name, version, count }) => [`${name}/${version}`, count]));
  return now.takeovers.flatMap(({ name, version, count }): Change[] => {
    // The past of a version that is served again is no news.
    const more = count - (known.get(`${name}/${version}`) ?? count);
    return more > 0 ? [{ event: "takeover", data: { model: name, version, count: more } }] : [];
  });
}

function lost(before: FleetLook, now: FleetLook): Change[] {
  const { gone_back: is } = now.fleet;
  const isNew = is !== undefined && is.times !== before.fleet.gone_back?.times;
  return isNew ? [{ event: "gone_back", data: is }] : [];
}

function without<Value>(some: ReadonlyMap<string, Value>, others: ReadonlyMap<string, Value>): [string, Value][] {
  return [...some].filter(([key]) => !others.has(key));
}
