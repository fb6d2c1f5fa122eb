/**
 * Every Redis key and NATS subject of Baton; nothing else builds one. A lane is one model version and one shard: its keys carry
 * one hash tag, so that each script touches one Cluster slot.
 */

export interface Lane {
  readonly model: string;
  readonly version: string;
  readonly shard: number;
}

/** The consumer group of every ready stream. */
export const GROUP = "workers";

/** Model names and versions never hold `:`, `{` or `}` (names are `[A-Za-z0-9._-]`), so tags cannot be forged. */
function tag({ model, version, shard }: Lane): string {
  return `{${model}:${version}:${shard}}`;
}

/** The keys that a lane has one of. */
export function laneKeys(lane: Lane) {
  const t = tag(lane);
  return {
    /** stream: steps that may run now, at most one per sequence */
    ready: `ready:${t}`,
    /** zset of sequence names: when each goes idle-expired, or +inf while it has queued work */
    live: `live:${t}`,
    /** hash entry id → runs alone that have not ended in a commit */
    runs: `runs:${t}`,
    /** stream: requests set aside, with the reason */
    dead: `dead:${t}`,
  };
}

/** A request's outcome; from admission on it also is the record that makes a retry harmless. */
export function outcomeKey(lane: Lane, request: string): string {
  return `out:${tag(lane)}:${request}`;
}

/** A stream's records, in order; the list's index is the record's. Lives as long as the outcome. */
export function logKey(lane: Lane, request: string): string {
  return `log:${tag(lane)}:${request}`;
}

/** The keys of one sequence. `name` comes from `sequenceName`. */
export function sequenceKeys(lane: Lane, name: string) {
  const t = tag(lane);
  return { seq: `seq:${t}:${name}`, state: `state:${t}:${name}`, wait: `wait:${t}:${name}` };
}

/** Until requests carry keys, all clients are one tenant. */
export const DEFAULT_TENANT = "default";

/** Injective: tenants are `[A-Za-z0-9_-]+` and the encoded id holds no `:`. */
export function sequenceName(tenant: string, encodedId: string): string {
  return `${tenant}:${encodedId}`;
}

export const registryKeys = {
  /** zset worker → when its announcement lapses or did (ms, Redis time) */
  workers: "{registry}:workers",
  /** hash worker → announcement (JSON) */
  announcements: "{registry}:announcements",
  /** hash: what all processes of the deployment agree on */
  deployment: "{registry}:deployment",
};

/** How long the fleet remembers what a worker served that has gone: requests queue for it as if it were back soon. */
export const REMEMBERED_MS = 600_000;

/** Outcomes for the requests that one gateway process waits for. */
export function replySubject(gateway: string): string {
  return `baton.reply.${gateway}`;
}

/**
 * Public: the records of one request, as they are committed. A subject's tokens are separated by dots, which a model's name may hold; `%` it may not.
 */
export function tokenSubject(tenant: string, { model }: Lane, request: string): string {
  return `baton.v1.${tenant}.${model.replaceAll(".", "%2E")}.${request}`;
}

/** Held for a moment by the one worker that reconciles the lane. */
export function reconcilerKey(lane: Lane): string {
  return `reconciler:${tag(lane)}`;
}
