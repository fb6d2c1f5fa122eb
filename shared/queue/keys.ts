/**
 * Every Redis key and NATS subject of Baton. Nothing else builds keys, except scripts, which build
 * the keys of many requests from the tag of a bucket. All keys of a bucket carry one hash tag, so
 * that each script touches one Cluster slot.
 */
import { createHash } from "node:crypto";
import { bucketTag } from "./bucket-tag.js";
import { pinText, requestName, type Lane, type RequestAddress } from "./address.js";

/** The consumer group of every ready stream. */
export const GROUP = "workers";

/**
 * The common part of the keys of a model in a bucket, `{tag}:model`, from which scripts build keys.
 * A model's name is `[A-Za-z0-9._-]+`, without `:`, `{` and `}`, so no name can forge another
 * model's keys.
 */
export function modelTag({ bucket, model }: Pick<Lane, "bucket" | "model">): string {
  return `${bucketTag(bucket)}:${model}`;
}

/** The keys of one lane, and the keys that the lane shares with the other versions of its model. */
export function laneKeys(lane: Lane) {
  const model = modelTag(lane);
  const pinned = `${model}:${pinText(lane)}`;
  return {
    /** stream: steps that may run now, at most one per sequence */
    ready: `ready:${pinned}`,
    /** zset: exists while the lane has parked requests; parking.lua lists the keys below it */
    queue: `queue:${pinned}`,
    /** hash: the parked requests, by name */
    parked: `parked:${pinned}`,
    /**
     * zset of the names of the model's sequences: the Redis ms before which none expires idle, or
     * +inf for a busy sequence; see live.lua
     */
    live: liveKey(lane),
    /** hash entry → how many runs alone have not ended in a commit, and the name of the last run */
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

/** A request's record; see outcome.lua. Gateways recognise a retry by this record. */
export function outcomeKey(address: RequestAddress): string {
  return `out:${modelTag(address)}:${requestName(address)}`;
}

/**
 * hash: a job's facts beside the request's; see job.lua.
 * @param job the address of the job's first request
 */
export function jobKey(job: RequestAddress): string {
  return `job:${modelTag(job)}:${requestName(job)}`;
}

/** sorted set: the jobs of a tenant in a bucket, by the time of their record; see job.lua. */
export function jobsKey(bucket: number, tenant: string): string {
  return `jobs:${bucketTag(bucket)}:${tenant}`;
}

/** set: the tenants that have jobs in a bucket; see job.lua. */
export function jobTenantsKey(bucket: number): string {
  return `tenants:${bucketTag(bucket)}`;
}

/** sorted set: the models with requests set aside, by the newest time; see set-aside.lua. */
export function setAsideKey(bucket: number): string {
  return `aside:${bucketTag(bucket)}`;
}

/**
 * list: a stream's records, in order; the index in the list is the record's. The list lives as long
 * as the outcome.
 */
export function logKey(address: RequestAddress): string {
  return `log:${modelTag(address)}:${requestName(address)}`;
}

/** string: what the next run of a request continues, to an iterative model; goes with its end. */
export function runKey(address: RequestAddress): string {
  return `run:${modelTag(address)}:${requestName(address)}`;
}

/**
 * hash: the facts of the sequences of a model in a bucket, by name; see sequence.lua. The key has
 * no version of the model: clients name a sequence by id, and the facts have the pin.
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
 * string: one checkpoint of a sequence, written once and never changed. The facts of the sequence
 * say from which checkpoint the next step continues.
 * @param name of the sequence
 * @param version names the run of the step that made the checkpoint
 */
export function versionKey(lane: Pick<Lane, "bucket" | "model">, name: string, version: string): string {
  return `state:${modelTag(lane)}:${name}@${version}`;
}

/** The keys for bringing states of a model in a bucket to disk. */
export function hibernationKeys(lane: Pick<Lane, "bucket" | "model">) {
  return {
    /** string: held by the one worker that brings states to disk in this round */
    round: `hibernating:${modelTag(lane)}`,
    /** string: the time up to which workers have looked at all sequences of the live set */
    reached: `hibernated:${modelTag(lane)}`,
  };
}

/**
 * string: the answer to a change of a sequence as a whole, for a client that repeats the change
 * under its Idempotency-Key; see sequences/once.lua.
 */
export function changeKey(lane: Pick<Lane, "bucket" | "model">, change: string): string {
  return `did:${modelTag(lane)}:${change}`;
}

/** The keys of which a deployment has one each. */
export const registryKeys = {
  /** zset living worker → Redis ms until which the worker counts as living without another beat */
  workers: "{registry}:workers",
  /** hash worker → announcement (JSON) */
  announcements: "{registry}:announcements",
  /** hash living worker → its connection: the server's run id, and the client's id there */
  connections: "{registry}:connections",
  /** zset of open graves → Redis ms of the worker's last sign of life; see graves.ts */
  graves: "{registry}:graves",
  /**
   * zset worker → Redis ms at which the worker left or was declared dead; the announcement stays
   */
  gone: "{registry}:gone",
  /** set: the gone workers that left by themselves; no process waits for these */
  left: "{registry}:left",
  /** string: changes whenever a worker joins, leaves or is declared dead */
  version: "{registry}:version",
  /** hash of all served pins, each with the facts for clearing its lanes; see pins.ts */
  pins: "{registry}:pins",
  /** string: the worker that looks after retired pins in this round */
  upkeep: "{registry}:upkeep",
  /** string: the jobs process that tidies in this round */
  tidying: "{registry}:tidying",
  /** string: the `version` at which no pin was retired */
  settled: "{registry}:settled",
  /**
   * zset of gateways and jobs processes, each as JSON → Redis ms until which the list shows the
   * process
   */
  processes: "{registry}:processes",
  /** hash: what the workers have counted; see report.lua */
  reports: "{registry}:reports",
  /** hash: what workers had counted that are gone; see report.lua */
  past: "{registry}:past",
  /** string: the gateway that observes the fleet, for as long as it renews this */
  observer: "{registry}:observer",
  /** stream: how the fleet stood every few seconds; see history.ts */
  history: "{registry}:history",
  /** hash: the settings of traces that operators have changed; see trace-settings.ts */
  tracing: "{registry}:tracing",
  /** string: how much all processes log, once an operator has changed it; see log-setting.ts */
  logging: "{registry}:logging",
  /** hash: the models that clients have asked to load and to unload; see wish.ts */
  wish: "{registry}:wish",
  /** hash worker → why no other process could take its place (JSON); see refusals.ts */
  refusals: "{registry}:refusals",
  /** hash: the settings that all processes of the deployment share */
  deployment: "{registry}:deployment",
};

/**
 * How long the fleet remembers a lost worker's models. Until then gateways queue requests for these
 * models, because the worker may be back soon.
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
 * hash: the counts of the queue; see load.lua. Three more keys, `open:`, `kept:` and `later:`,
 * belong to it. In a Redis Cluster there is one for each bucket, in its slot.
 * @param bucket undefined outside of a Cluster
 */
export function loadKey(bucket: number | undefined): string {
  return `load:${bucket === undefined ? "all" : bucketTag(bucket)}`;
}

/** hash: how many sequences each tenant and each model has in a bucket; see held.lua. */
export function heldKey(bucket: number): string {
  return `load:${bucketTag(bucket)}:sequences`;
}

/** hash: the requests that count, as `requestInKey` names each; see load.lua. */
export function openKey(load: string): string {
  return `open${load.slice("load".length)}`;
}

/** sorted set: the jobs to queue later, by due time; see later.lua. */
export function laterKey(load: string): string {
  return `later${load.slice("load".length)}`;
}

/**
 * The name of a request in `openKey`.
 * @param outcome from `outcomeKey`
 */
export function requestInKey(outcome: string): string {
  return outcome.slice("out:".length);
}

/** string: held by the one gateway that counts again in this round; in the slot of `loadKey`. */
export function loadTurnKey(load: string): string {
  return `recount${load.slice("load".length)}`;
}

/**
 * hash: what a tenant has used in a UTC day, by key and model; see usage.lua.
 * @param load the key of the counts beside it
 * @param day such as 2026-11-28
 */
export function usageKey(load: string, tenant: string, day: string): string {
  return `usage${load.slice("load".length)}:${tenant}:${day}`;
}

/** hash: what owners have used in a UTC month, such as 2026-11; see usage.lua. */
export function spentKey(load: string, month: string): string {
  return `spent${load.slice("load".length)}:${month}`;
}

/** The key of the counts for the requests that the calls of this record admit. */
export function loadKeyBeside(callsKey: string): string {
  return `load:${/\{[^}]*\}/.exec(callsKey)?.[0] ?? "all"}`;
}

/**
 * list: names of ended requests for which one gateway process waits, left by workers that cannot
 * reach NATS.
 */
export function unpublishedKey(gateway: string): string {
  return `unpublished:${gateway}`;
}

/** stream: the events of a bucket for webhooks; see events.lua. */
export function eventsKey(bucket: number): string {
  return `events:${bucketTag(bucket)}`;
}

/** hash tenant → the revision of the tenant's webhooks, and their events; see events.lua. */
export function wantedKey(bucket: number): string {
  return `wanted:${bucketTag(bucket)}`;
}

/**
 * The keys of the answers that gateways keep for equal requests; see cache/keep.lua.
 * @param bucket undefined outside of a Cluster
 */
export function cacheKeys(bucket: number | undefined) {
  const used = `cached:${bucket === undefined ? "all" : bucketTag(bucket)}`;
  return {
    /** zset: the digest and the bytes of each answer → Redis ms of its last use */
    used,
    /** string: the bytes of all answers */
    bytes: `${used}:bytes`,
    /** string: an answer, as a frame */
    answerOf: (digest: string) => `${used}:${digest}`,
  };
}

/** The keys of API keys and tenants; all lie in one slot. */
export const ownerKeys = {
  /** string: a key (JSON) */
  key: (id: string) => `{keys}:key:${id}`,
  /** string: a tenant (JSON) */
  tenant: (tenant: string) => `{keys}:tenant:${tenant}`,
  /** zset: id of each key → Redis ms of the making */
  ids: "{keys}:ids",
  /** zset: id of each key of the tenant → Redis ms of the making */
  idsOf: (tenant: string) => `{keys}:ids:${tenant}`,
  /** zset: each tenant → Redis ms of the making */
  tenants: "{keys}:tenants",
  /** zset: id of each key with the scope `operator` → Redis ms at which the key expires */
  operators: "{keys}:operators",
  /** hash: id of each key that was used → Redis ms of its last use, a minute late at most */
  used: "{keys}:used",
  /** string: the sealed answer that shows a new key, kept for repeated calls */
  kept: (name: string) => `{keys}:kept:${name}`,
  /** stream: the changes of all records, for gateways */
  changes: "{keys}:changes",
};

/** The keys of webhooks and of deliveries; all lie in one slot. */
export const webhookKeys = {
  /** hash tenant → how often the tenant's webhooks have changed */
  revisions: "{hooks}:revisions",
  /** hash id → the webhook (JSON) */
  webhooks: (tenant: string) => `{hooks}:webhooks:${tenant}`,
  /** zset of the tenant's deliveries: message id → Redis ms at which the delivery began */
  deliveries: (tenant: string) => `{hooks}:deliveries:${tenant}`,
  /** zset of the tenant's ended deliveries: message id → Redis ms at which the delivery ended */
  ended: (tenant: string) => `{hooks}:ended:${tenant}`,
  /** zset of all tenants' pending deliveries: `tenant:message` → Redis ms of the next attempt */
  pending: "{hooks}:pending",
  /** zset: the messages about one job → Redis ms at which each began */
  ofJob: (tenant: string, job: string) => `{hooks}:of-job:${tenant}:${job}`,
  /** string: how many replays the tenant has asked for in this minute */
  replays: (tenant: string) => `{hooks}:replays:${tenant}`,
  /** string: a change under an Idempotency-Key, kept for repeated calls (kept-answers.ts) */
  change: (name: string) => `{hooks}:change:${name}`,
  /** hash: one message to one webhook, and its attempts; see webhooks/begin-delivery.lua */
  delivery: (tenant: string, message: string) => `{hooks}:delivery:${tenant}:${message}`,
};

/** The keys of schedules; all lie in one slot. make-schedule.lua has their fields. */
export const scheduleKeys = {
  /** hash: one schedule */
  schedule: (tenant: string, id: string) => `{schedules}:schedule:${tenant}:${id}`,
  /** zset of the tenant's schedules: id → Redis ms of the schedule's creation */
  ids: (tenant: string) => `{schedules}:ids:${tenant}`,
  /** hash: bytes of the schedules of each tenant, and of all under '' */
  bytes: "{schedules}:bytes",
  /** zset of active schedules: `tenant:id` → Redis ms at which each is due next */
  due: "{schedules}:due",
};

/** The keys of batches; all lie in one slot. batches/README.md describes each. */
export const batchKeys = {
  /** In a Redis Cluster in place of a bucket's `loadKey`, for the rates of owners. */
  load: "load:{batches}",
  batch: (tenant: string, id: string) => `{batches}:batch:${tenant}:${id}`,
  openOfAll: "{batches}:open",
  all: (tenant: string) => `{batches}:all:${tenant}`,
  openOf: (tenant: string) => `{batches}:open:${tenant}`,
  duplicates: (tenant: string, id: string) => `{batches}:again:${tenant}:${id}`,
};

/** string: marks that the outbox of a bucket has the end of a batch; the bucket is another slot. */
export function batchToldKey(bucket: number, id: string): string {
  return `told:${bucketTag(bucket)}:${id}`;
}

/** The keys of files; all lie in one slot. The files' bytes are elsewhere; see files/README.md. */
export const fileKeys = {
  /** hash: one file; see files/reserve-file.lua */
  file: (tenant: string, id: string) => `{files}:file:${tenant}:${id}`,
  /** zset of the tenant's whole files: id → Redis ms of the file's creation */
  all: (tenant: string) => `{files}:all:${tenant}`,
  /**
   * zset: the users of a file → Redis ms at which the use ends; upkeep keeps the file until then
   */
  users: (tenant: string, id: string) => `{files}:users:${tenant}:${id}`,
  /** string: the file of the first upload under an Idempotency-Key (kept-answers.ts) */
  upload: (name: string) => `{files}:upload:${name}`,
  /** hash: bytes and numbers of files, of each tenant and of all */
  sums: "{files}:sums",
  /** zset `tenant:id` → Redis ms from which on upkeep looks at the file */
  due: "{files}:due",
};

/**
 * The prefix of the keys of BullMQ's queues: one hash tag, because BullMQ's scripts take many keys.
 */
export const QUEUE_PREFIX = "{jobs}";

/** NATS subject: outcomes of the requests for which one gateway process waits. */
export function replySubject(gateway: string): string {
  return `baton.reply.${gateway}`;
}

/**
 * NATS subject, public: the records of one request, in the order of their commits. Dots separate
 * the tokens of a subject, so a dot of the model's name becomes `%2E`; a name never holds a `%`.
 */
export function tokenSubject({ model, tenant, request }: RequestAddress): string {
  return `baton.v1.${tenant}.${modelToken(model)}.${request}`;
}

/**
 * The subjects of all requests of a tenant.
 * @param model undefined: of all models
 */
export function subjectsOf(tenant: string, model: string | undefined): string {
  return `baton.v1.${tenant}.${model === undefined ? "*" : modelToken(model)}.*`;
}

/**
 * The name of a label in subjects: a label's value may be any text, but a token of a subject may
 * not. The hash is part of the public contract, so clients may compute it, too.
 */
export function labelToken(name: string, value: string): string {
  return createHash("sha256").update(`${name}:${value}`).digest("base64url").slice(0, LABEL_TOKEN_LENGTH);
}

/** Characters of base64url, so 132 bits: no client finds two labels with the same token. */
const LABEL_TOKEN_LENGTH = 22;

/**
 * NATS subject, public: the records of one request that runs a job with a label. This subject has
 * more tokens than the request's own, so only the wildcard `>` means both.
 * @param label from `labelToken`
 */
export function labelledSubject(label: string, { model, tenant, request }: RequestAddress): string {
  return `baton.v1.${tenant}.label.${label}.${modelToken(model)}.${request}`;
}

/** The subjects of all requests of a tenant that run jobs with a label. */
export function subjectsOfLabel(tenant: string, label: string): string {
  return `baton.v1.${tenant}.label.${label}.*.*`;
}

/** The subjects of all requests of all tenants, and of their labels. */
export const ALL_TOKENS_SUBJECTS: readonly string[] = ["baton.v1.*.*.*", "baton.v1.*.label.*.*.*"];

function modelToken(model: string): string {
  return model.replaceAll(".", "%2E");
}

/** NATS subject: the lanes with newly opened graves (worker/liveness/grave-calls.ts). */
export const GRAVES_SUBJECT = "baton.graves";

/** NATS subject: the models for which clients wait (gateway/admission/client-calls.ts). */
export const CLIENTS_SUBJECT = "baton.clients";
