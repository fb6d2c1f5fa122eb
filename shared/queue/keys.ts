/**
 * Every Redis key and NATS subject of Baton; nothing else builds one, but the scripts, which build
 * the keys of many requests from the tag of their bucket. All keys of a bucket carry one hash tag,
 * so that each script touches one Cluster slot.
 */
import { createHash } from "node:crypto";
import { bucketTag } from "./bucket-tag.js";
import { pinText, requestName, type Lane, type RequestAddress } from "./address.js";

/** The consumer group of every ready stream. */
export const GROUP = "workers";

/**
 * What the keys of a model in a bucket have in common, `{tag}:model`: scripts build keys from it. A
 * model's name is `[A-Za-z0-9._-]+`, without `:`, `{` and `}`, so no name can forge another one's
 * keys.
 */
export function modelTag({ bucket, model }: Pick<Lane, "bucket" | "model">): string {
  return `${bucketTag(bucket)}:${model}`;
}

/** The keys of one lane, and those that it shares with the other versions of its model. */
export function laneKeys(lane: Lane) {
  const model = modelTag(lane);
  const pinned = `${model}:${pinText(lane)}`;
  return {
    /** stream: steps that may run now, at most one per sequence */
    ready: `ready:${pinned}`,
    /** zset: exists while requests of the lane are parked; parking.lua lists the keys below it */
    queue: `queue:${pinned}`,
    /** hash: the requests that are parked, by their names */
    parked: `parked:${pinned}`,
    /**
     * zset of the names of the model's sequences: the Redis ms at which each expires idle, or +inf
     * while it has queued work
     */
    live: liveKey(lane),
    /** hash entry → how many runs alone have not ended in a commit, and the name of the last */
    runs: `runs:${pinned}`,
    /** stream: requests set aside, with the reason */
    dead: `dead:${model}`,
    /** string: held by the one worker that reconciles the lane in this round */
    reconciler: `reconciler:${pinned}`,
  };
}

/** sorted set: the sequences of a model in a bucket, by when they expire idle; see `laneKeys`. */
export function liveKey(lane: Pick<Lane, "bucket" | "model">): string {
  return `live:${modelTag(lane)}`;
}

/** A request's record; see outcome.lua. It is what recognises a retry. */
export function outcomeKey(address: RequestAddress): string {
  return `out:${modelTag(address)}:${requestName(address)}`;
}

/**
 * hash: what is known of a job beside its request; see job.lua.
 * @param job the address of its first request
 */
export function jobKey(job: RequestAddress): string {
  return `job:${modelTag(job)}:${requestName(job)}`;
}

/** sorted set: the jobs of a tenant in a bucket, by when they were recorded; see job.lua. */
export function jobsKey(bucket: number, tenant: string): string {
  return `jobs:${bucketTag(bucket)}:${tenant}`;
}

/** set: the tenants that have jobs in a bucket; see job.lua. */
export function jobTenantsKey(bucket: number): string {
  return `tenants:${bucketTag(bucket)}`;
}

/** sorted set: the models of which requests were set aside, by when; see set-aside.lua. */
export function setAsideKey(bucket: number): string {
  return `aside:${bucketTag(bucket)}`;
}

/**
 * list: a stream's records, in order; the index in the list is the record's. It is kept as long as
 * the outcome.
 */
export function logKey(address: RequestAddress): string {
  return `log:${modelTag(address)}:${requestName(address)}`;
}

/**
 * hash: what is known of the sequences of a model in a bucket, by their names; see sequence.lua. No
 * version of the model is in the key: a sequence is found by its id, and its facts say to which
 * version it is pinned.
 */
export function sequencesKey(lane: Pick<Lane, "bucket" | "model">): string {
  return `seqs:${modelTag(lane)}`;
}

/**
 * list: the steps of one sequence that wait.
 * @param name from `sequenceName`
 */
export function waitKey(lane: Pick<Lane, "bucket" | "model">, name: string): string {
  return `wait:${modelTag(lane)}:${name}`;
}

/**
 * string: one checkpoint of a sequence. It is written once and never changed; which one a sequence
 * goes on from is said by its facts.
 * @param name of the sequence
 * @param version names the run of the step that made it
 */
export function versionKey(lane: Pick<Lane, "bucket" | "model">, name: string, version: string): string {
  return `state:${modelTag(lane)}:${name}@${version}`;
}

/** The keys that bringing states of a model in a bucket to disk has. */
export function hibernationKeys(lane: Pick<Lane, "bucket" | "model">) {
  return {
    /** string: held by the one worker that does it in this round */
    round: `hibernating:${modelTag(lane)}`,
    /** string: up to which time of the live set all sequences have been looked at */
    reached: `hibernated:${modelTag(lane)}`,
  };
}

/**
 * string: what a change to a sequence as a whole was answered, for who repeats it under its
 * Idempotency-Key; see sequences/once.lua.
 */
export function changeKey(lane: Pick<Lane, "bucket" | "model">, change: string): string {
  return `did:${modelTag(lane)}:${change}`;
}

/** The keys that a deployment has one of. */
export const registryKeys = {
  /** zset living worker → Redis ms until which it counts as living without another beat */
  workers: "{registry}:workers",
  /** hash worker → announcement (JSON) */
  announcements: "{registry}:announcements",
  /** hash living worker → its connection: the server's run id, and the client's id there */
  connections: "{registry}:connections",
  /** zset of open graves → Redis ms since when; see graves.ts */
  graves: "{registry}:graves",
  /** zset worker → Redis ms at which it left or was declared dead; its announcement is kept */
  gone: "{registry}:gone",
  /** set: those of the gone workers that left by themselves, and need not be waited for */
  left: "{registry}:left",
  /** string: another one whenever a worker joins, leaves or is declared dead */
  version: "{registry}:version",
  /** hash of pins that were served, with what clearing their lanes takes; see pins.ts */
  pins: "{registry}:pins",
  /** string: the worker that looks after retired pins in this round */
  upkeep: "{registry}:upkeep",
  /** string: the jobs process that tidies in this round */
  tidying: "{registry}:tidying",
  /** string: the `version` at which no pin was retired */
  settled: "{registry}:settled",
  /** zset of gateways and jobs processes, each as JSON → Redis ms until which it is listed */
  processes: "{registry}:processes",
  /** hash: what all processes of the deployment agree on */
  deployment: "{registry}:deployment",
};

/**
 * How long the fleet remembers what a lost worker served: until then requests are queued for its
 * models, since it may be back soon.
 */
export const REMEMBERED_MS = 600_000;

/**
 * string: number and answers of the last admission call of one gateway process. In a Redis Cluster
 * there is one for each bucket, in its slot.
 * @param bucket undefined outside of a Cluster
 */
export function callsKey(gateway: string, bucket: number | undefined): string {
  return bucket === undefined ? `calls:${gateway}` : `calls:${bucketTag(bucket)}:${gateway}`;
}

/**
 * hash: what lies in the queue, counted; see load.lua. Three more keys, `open:`, `kept:` and
 * `later:`, go with it. In a Redis Cluster there is one for each bucket, in its slot.
 * @param bucket undefined outside of a Cluster
 */
export function loadKey(bucket: number | undefined): string {
  return `load:${bucket === undefined ? "all" : bucketTag(bucket)}`;
}

/** hash: the requests that are counted, as `requestInKey` names them; see load.lua. */
export function openKey(load: string): string {
  return `open${load.slice("load".length)}`;
}

/** sorted set: the jobs that are to be queued later, by when; see later.lua. */
export function laterKey(load: string): string {
  return `later${load.slice("load".length)}`;
}

/**
 * How a request is named in `openKey`.
 * @param outcome from `outcomeKey`
 */
export function requestInKey(outcome: string): string {
  return outcome.slice("out:".length);
}

/** string: held by the one gateway that counts again in this round; in the slot of `loadKey`. */
export function loadTurnKey(load: string): string {
  return `recount${load.slice("load".length)}`;
}

/** The key of what is counted of the requests that the calls of this record admit. */
export function loadKeyBeside(callsKey: string): string {
  return `load:${/\{[^}]*\}/.exec(callsKey)?.[0] ?? "all"}`;
}

/**
 * list: names of requests that have ended and that one gateway process waits for, left by workers
 * that cannot reach NATS.
 */
export function unpublishedKey(gateway: string): string {
  return `unpublished:${gateway}`;
}

/** stream: what has happened in a bucket that webhooks are to be told of; see events.lua. */
export function eventsKey(bucket: number): string {
  return `events:${bucketTag(bucket)}`;
}

/** hash tenant → the revision of its webhooks, and the events that they want; see events.lua. */
export function wantedKey(bucket: number): string {
  return `wanted:${bucketTag(bucket)}`;
}

/** The keys of webhooks and of what was delivered to them; all lie in one slot. */
export const webhookKeys = {
  /** hash tenant → how often its webhooks were changed */
  revisions: "{hooks}:revisions",
  /** hash id → the webhook (JSON) */
  webhooks: (tenant: string) => `{hooks}:webhooks:${tenant}`,
  /** zset of the tenant's deliveries: message id → Redis ms at which it began */
  deliveries: (tenant: string) => `{hooks}:deliveries:${tenant}`,
  /** zset: those of them that have ended, message id → Redis ms at which each did */
  ended: (tenant: string) => `{hooks}:ended:${tenant}`,
  /** zset: what is pending of all tenants, `tenant:message` → Redis ms at which it is attempted */
  pending: "{hooks}:pending",
  /** zset: the messages that tell of one job → Redis ms at which each began */
  ofJob: (tenant: string, job: string) => `{hooks}:of-job:${tenant}:${job}`,
  /** string: how many replays the tenant has asked for in this minute */
  replays: (tenant: string) => `{hooks}:replays:${tenant}`,
  /** hash: one message to one webhook, and the attempts at it; see webhooks/begin-delivery.lua */
  delivery: (tenant: string, message: string) => `{hooks}:delivery:${tenant}:${message}`,
};

/** The keys of schedules; all lie in one slot. make-schedule.lua has their fields. */
export const scheduleKeys = {
  /** hash: one schedule */
  schedule: (tenant: string, id: string) => `{schedules}:schedule:${tenant}:${id}`,
  /** zset of the tenant's schedules: id → Redis ms at which it was made */
  ids: (tenant: string) => `{schedules}:ids:${tenant}`,
  /** hash: bytes of the schedules of each tenant, and of all under '' */
  bytes: "{schedules}:bytes",
  /** zset of schedules that are active: `tenant:id` → Redis ms at which each is due next */
  due: "{schedules}:due",
};

/** The keys of batches; all lie in one slot. batches/README.md says what each is. */
export const batchKeys = {
  batch: (tenant: string, id: string) => `{batches}:batch:${tenant}:${id}`,
  openOfAll: "{batches}:open",
  all: (tenant: string) => `{batches}:all:${tenant}`,
  openOf: (tenant: string) => `{batches}:open:${tenant}`,
  duplicates: (tenant: string, id: string) => `{batches}:again:${tenant}:${id}`,
};

/** string: that the end of a batch was noted in the outbox of a bucket, which is another slot. */
export function batchToldKey(bucket: number, id: string): string {
  return `told:${bucketTag(bucket)}:${id}`;
}

/** The keys of files, whose bytes are elsewhere; all lie in one slot. files/README.md says more. */
export const fileKeys = {
  /** hash: one file; see files/reserve-file.lua */
  file: (tenant: string, id: string) => `{files}:file:${tenant}:${id}`,
  /** zset: the tenant's files that are whole, id → Redis ms at which each was made */
  all: (tenant: string) => `{files}:all:${tenant}`,
  /** set: who uses a file, which is not removed meanwhile */
  users: (tenant: string, id: string) => `{files}:users:${tenant}:${id}`,
  /** hash: bytes and numbers of files, of each tenant and of all */
  sums: "{files}:sums",
  /** zset `tenant:id` → Redis ms from which on upkeep looks at the file */
  due: "{files}:due",
};

/** What the keys of BullMQ's queues begin with: one hash tag, since its scripts take many. */
export const QUEUE_PREFIX = "{jobs}";

/** NATS subject: outcomes of the requests that one gateway process waits for. */
export function replySubject(gateway: string): string {
  return `baton.reply.${gateway}`;
}

/**
 * NATS subject, public: the records of one request, as they are committed. Dots separate the tokens
 * of a subject, so those of the model's name are written as `%2E`; a name never holds a `%`.
 */
export function tokenSubject({ model, tenant, request }: RequestAddress): string {
  return `baton.v1.${tenant}.${modelToken(model)}.${request}`;
}

/**
 * The subjects of all requests of a tenant.
 * @param model undefined: to any model
 */
export function subjectsOf(tenant: string, model: string | undefined): string {
  return `baton.v1.${tenant}.${model === undefined ? "*" : modelToken(model)}.*`;
}

/**
 * How a label is named in subjects: its value may be any text, which a token of a subject may not.
 * It is part of the public contract, so clients may compute it, too.
 */
export function labelToken(name: string, value: string): string {
  return createHash("sha256").update(`${name}:${value}`).digest("base64url").slice(0, LABEL_TOKEN_LENGTH);
}

/** Of base64url, so 132 bits: nobody finds two labels that have the same. */
const LABEL_TOKEN_LENGTH = 22;

/**
 * NATS subject, public: the records of one request that runs a job with a label. It has more tokens
 * than the request's own subject, so no wildcard but `>` means both.
 * @param label from `labelToken`
 */
export function labelledSubject(label: string, { model, tenant, request }: RequestAddress): string {
  return `baton.v1.${tenant}.label.${label}.${modelToken(model)}.${request}`;
}

/** The subjects of all requests of a tenant that run jobs with a label. */
export function subjectsOfLabel(tenant: string, label: string): string {
  return `baton.v1.${tenant}.label.${label}.*.*`;
}

/** The subjects of all requests of all tenants, and those of their labels. */
export const ALL_TOKENS_SUBJECTS: readonly string[] = ["baton.v1.*.*.*", "baton.v1.*.label.*.*.*"];

function modelToken(model: string): string {
  return model.replaceAll(".", "%2E");
}

/** NATS subject: in which lanes graves were just opened (worker/liveness/grave-calls.ts). */
export const GRAVES_SUBJECT = "baton.graves";

/** NATS subject: for which models clients wait (gateway/admission/client-calls.ts). */
export const CLIENTS_SUBJECT = "baton.clients";
