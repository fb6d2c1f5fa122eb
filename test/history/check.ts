/** All invariants at once: an empty list is a proof only as good as the evidence, so its size is reported beside it. */
import type { CommitSample, Floor, ResourceLimits, ResourceSample } from "./facts.js";
import { byRequest, type Event } from "./history.js";
import * as invariants from "./invariants.js";
import type { Violation } from "./invariants.js";

export interface Evidence {
  readonly events: readonly Event[];
  readonly floor: Floor;
  readonly commits: readonly CommitSample[];
  readonly resources: readonly ResourceSample[];
  readonly limits: ResourceLimits;
}

export function check({ events, floor, commits, resources, limits }: Evidence): Violation[] {
  const requests = byRequest(events);
  return [
    ...invariants.everyRequestEnds(requests, floor),
    ...invariants.oneOutcome(requests),
    ...invariants.noPhantom(events, requests, floor),
    ...invariants.unknownsResolve(requests, floor),
    ...invariants.stateIsFold(requests),
    ...invariants.neverBack(commits, requests),
    ...invariants.oneCommitter(commits, requests),
    ...invariants.cleanFloor(floor, requests),
    ...invariants.bounded(resources, limits),
    ...invariants.nobodyElsePays(requests),
  ];
}
