/** The typed wrapper of admit.lua: the only way into a queue. */
import { laneText, parsePin, pinText, requestName, type Lane, type Pin, type RequestInBucket } from "../address.js";
import { bucketTag } from "../bucket-tag.js";
import { bytesOf, jobArguments, type JobPart } from "../pieces/job.js";
import type { Load } from "../pieces/load.js";
import { laneKeys, loadKeyBeside, modelTag } from "../keys.js";
import { pastReasons, type PastReason } from "../pieces/past.js";
import { termsText, usualTerms, type WaitingTerms } from "../pieces/parking.js";
import {
  limitNames,
  limitsOf,
  loadsOf,
  type CallLimits,
  type CallNames,
  type LimitName,
  type OwnerLimit,
  type QueuedLimits,
  type QueueLimits,
  type Shares,
} from "./limits.js";
import {
  ratesOfCall,
  shareOfRate,
  standingsOf,
  type ChargedRate,
  type Rate,
  type RateStanding,
} from "../pieces/rates.js";
import { quotaFields, quotasOfCall, usageOfCall, type Quota, type QuotaField, type Usage } from "../pieces/usage.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, bytes, word } from "../../redis/script.js";

export type Admission =
  | { readonly said: "admitted"; readonly rates?: readonly RateStanding[] | undefined }
  /**
   * Admitted before under the same Idempotency-Key, for the model that `pin` names. `outcome` is
   * undefined while there is none.
   */
  | {
      readonly said: "known";
      readonly pin: Pin;
      readonly outcome: { readonly kind: string; readonly body: Buffer } | undefined;
      readonly rates?: readonly RateStanding[] | undefined;
    }
  /** The request's owner sent too many before: the rate of this name has room again in `waitUs`. */
  | { readonly said: "too-soon"; readonly name: string; readonly waitUs: number }
  /** The owner of this name has as many generations as it may have. */
  | { readonly said: "too-many"; readonly name: string }
  /** The owner of this name has used up its quota of what this field counts. */
  | { readonly said: "over-quota"; readonly name: string; readonly field: QuotaField }
  /** A step without START whose sequence continues only under this pin. */
  | { readonly said: "pinned"; readonly pin: Pin }
  /** The next step of its sequence has this number, less or more than the number of the client. */
  | { readonly said: "ahead" | "behind"; readonly number: number }
  /** An earlier step in the same call has to come again, and so does this step. */
  | { readonly said: "held-back" }
  | { readonly said: "mismatch" | "backlog-full" | "too-many-sequences" }
  /** The tenant has as many sequences of all models as it may have. */
  | { readonly said: "too-many-of-tenant" }
  /** The job that the request runs again has another request by now. */
  | { readonly said: "job-changed" }
  /** There is no sequence for the step. */
  | { readonly said: "start-required"; readonly why: PastReason }
  /** This limit leaves no room for the request. */
  | { readonly said: "queue-full"; readonly limit: LimitName | "level" }
  /** The request was known, but its record has expired since the first copy of the call. */
  | { readonly said: "forgotten" }
  /** An error in Redis at one of its keys; the request may or may not be in the queue. */
  | { readonly said: "failed"; readonly why: string };

/** The result of a call. */
export type Admitted =
  /** An answer for each applicant, in order. */
  | { readonly said: "answered"; readonly admissions: readonly Admission[] }
  /** Redis has done a later call of the same record. This call had no effect. */
  | { readonly said: "late" }
  /**
   * Redis knows of no later call than `last`, although it has acknowledged a later call. This call
   * had no effect. The gateway may send it again, with `last` as the acknowledged number.
   */
  | { readonly said: "gone-back"; readonly last: number };

/**
 * Names a call for ever, so that any number of copies take effect once. A gateway sends the calls
 * of a record in turn: the next call only after this call has an answer, or the gateway gives it
 * up.
 */
export interface NumberedCall {
  /** Key of the record, from `callsKey`. */
  readonly record: string;
  /** From 1; higher with each call of the record. */
  readonly number: number;
  /** The last number that Redis has answered; 0 for none. */
  readonly acknowledged: number;
}

/**
 * How long after a gateway's last call Redis still refuses copies, in ms. Within this time a
 * gateway that has nothing to admit sends an empty call.
 */
export const CALLS_KEPT_MS = 3_600_000;

/**
 * Most bytes and requests of a call; a single larger request goes alone. A longer call would delay
 * the heartbeats of all workers.
 */
export const CALL_LIMITS = { bytes: 1_048_576, items: 64 };

/** How long Redis keeps what clients have used, in days, if a deployment does not say. */
export const USAGE_DAYS = 90;
const DAY_MS = 86_400_000;

/** More entries than a ready stream ever has, so that no request is parked. */
const NO_WINDOW = 1e12;

/** The terms that all requests of a call share. */
export interface Terms {
  /** Names the gateway process to which workers send outcomes. */
  readonly gateway: string;
  /** Past these limits the script refuses a request. */
  readonly limits: QueueLimits;
  /** A bucket's share of the limits; absent if there is a single server or bucket. */
  readonly shares?: Shares;
  /** How many buckets the deployment has: outside of a Cluster, their sequences count together. */
  readonly buckets?: number;
  /** How long Redis keeps what clients have used, in days; absent: as the script says. */
  readonly usageDays?: number | undefined;
  /** Whether usual steps take the short way of the script; absent: true. */
  readonly shortScripts?: boolean;
}

/** A request, in the form that the script takes. */
export interface Applicant extends RequestInBucket {
  readonly lane: Lane;
  readonly frame: Buffer;
  /**
   * Digest of the client's order: a retry under the same Idempotency-Key must match it. Empty
   * without a key.
   */
  readonly digest: string;
  readonly outcomeTtlMs: number;
  readonly deadlineMs: number;
  /**
   * How long a client surely wants the stream; 0: it runs to its end even without a reader.
   * Undefined if the request is no stream and its client waits: then it may be brief (load.lua).
   */
  readonly attendedMs: number | undefined;
  /**
   * Entries of the lane's ready stream past which to park its requests; absent: never. The first
   * applicant of a lane decides for the call.
   */
  readonly window?: number | undefined;
  /** How the request waits if parked; absent for the usual terms. */
  readonly waiting?: WaitingTerms | undefined;
  /** `name` comes from `sequenceName`. Undefined for a stateless request. */
  readonly sequence:
    | {
        readonly name: string;
        readonly start: boolean;
        readonly end: boolean;
        /** Whether the step begins the sequence if there is none, as if it had START. */
        readonly mayBegin?: boolean | undefined;
        /** The number that the step should have; absent if the client names none. */
        readonly number?: number | undefined;
      }
    | undefined;
  /** Absent for a request without a job. */
  readonly job?: JobPart | undefined;
  /** The rates of the request's owner; absent if the owner has none. */
  readonly rates?: readonly ChargedRate[] | undefined;
  /** The owners for whom the request counts as a generation; absent if none has a limit. */
  readonly owners?: readonly OwnerLimit[] | undefined;
  /** The tenant's own limits in the queue; absent if it has none. */
  readonly queued?: QueuedLimits | undefined;
  /** Most live sequences of the tenant, of all models; absent if it has no limit of them. */
  readonly liveSequences?: number | undefined;
  /** Whose usage the request counts as; absent if nobody counts it. */
  readonly usage?: Usage | undefined;
  /** The quotas of the request's owner; absent if the owner has none. */
  readonly quotas?: readonly Quota[] | undefined;
  /** Hears how many requests go to Redis in the same call; absent if nothing wants to know. */
  readonly called?: ((requests: number) => void) | undefined;
}

const answers = [
  "admitted",
  "held-back",
  "mismatch",
  "backlog-full",
  "too-many-sequences",
  "too-many-of-tenant",
  "job-changed",
  "forgotten",
] as const;

/** The first words of answers with more to say. */
const arrayAnswers = [
  "admitted",
  "known",
  "too-soon",
  "too-many",
  "over-quota",
  "pinned",
  "failed",
  "ahead",
  "behind",
  "queue-full",
  "start-required",
] as const;

const script = defineScript(
  new URL("./admit.lua", import.meta.url),
  (reply): { readonly admitted: Admitted; readonly loads: readonly Load[] } => {
    const [first, second, loads] = list(reply);
    return { admitted: admittedOf(first, second), loads: loads === undefined ? [] : loadsOf(list(loads)) };
  },
  {
    keys: ["load", "calls", { ready: [] }],
    args: [
      "gateway",
      "limits",
      "mostWaiting",
      "short",
      "tags",
      "number",
      "acknowledged",
      "recordMs",
      "requestCount",
      { lanes: ["base", "pin", "window"] },
      {
        requests: [
          "lane",
          "name",
          "frame",
          "digest",
          "ttl",
          "deadline",
          "attended",
          "sequence",
          "flags",
          "step",
          "terms",
          "mostParked",
        ],
      },
      { jobs: ["request", "name", "was", "keep", "fields..."] },
    ],
    durable: true,
  },
);

function admittedOf(first: unknown, second: unknown): Admitted {
  const said = word(first, ["answered", "late", "gone-back"]);
  switch (said) {
    case "answered":
      return { said, admissions: list(second).map(admission) };
    case "gone-back":
      return { said, last: integer(second) };
    case "late":
      return { said };
  }
}

function admission(answer: unknown): Admission {
  if (!Array.isArray(answer)) return { said: word(answer, answers) };
  const [first, ...rest] = list(answer);
  const [second, body, pin] = rest;
  const said = word(first, arrayAnswers);
  if (said === "admitted") return { said, rates: standingsOf(rest) };
  if (said === "too-many") return { said, name: text(second) };
  if (said === "over-quota") return { said, name: text(second), field: word(body, quotaFields) };
  if (said === "too-soon") return { said, name: text(second), waitUs: integer(body) };
  if (said === "start-required") return { said, why: word(second, pastReasons) };
  if (said === "queue-full") return { said, limit: word(second, limitNames) };
  if (said === "failed") return { said, why: text(second) };
  if (said === "ahead" || said === "behind") return { said, number: integer(second) };
  if (said === "pinned") return { said, pin: parsePin(text(second)) };
  const kind = text(second);
  const outcome = kind === "" ? undefined : { kind, body: bytes(body) };
  return { said, pin: parsePin(text(pin)), outcome, rates: standingsOf(rest.slice(3)) };
}

/**
 * @param applicants of any lanes; in a Redis Cluster, of lanes of the same bucket. A call without
 * applicants only notes its number
 * @returns the answer that every copy of this call gets, in any order of arrival
 */
export async function admit(
  redis: RedisClient,
  { gateway, limits, shares, buckets, usageDays = USAGE_DAYS, shortScripts = true }: Terms,
  applicants: readonly Applicant[],
  { record, number, acknowledged }: NumberedCall,
): Promise<Admitted> {
  const bucket = applicants[0]?.lane.bucket ?? 0;
  const tags = redis.isCluster || buckets === undefined ? bucketsOf(applicants) : tagsOf(buckets);
  const names = namesOf(applicants);
  await shares?.prepare(names);
  const { jobs: ofJobs, ...ofOthers } = shares?.limitsOf(bucket, names) ?? limitsOf(limits, names);
  const jobs = applicants.flatMap(({ job }, i) => (job === undefined ? [] : { request: i + 1, ...jobArguments(job) }));
  const share = (rate: Rate) => (redis.isCluster ? shareOfRate(rate, bucket, buckets ?? 1) : rate);
  const rates = ratesOfCall(applicants, share);
  const owners = ownersOfCall(applicants, (owner) => shares?.generationsOf(bucket, owner) ?? owner.most);
  const quotas = quotasOfCall(applicants, (quota) => shares?.quotaOf(bucket, quota) ?? quota.most);
  const usage = usageOfCall(applicants, usageDays * DAY_MS);
  // What is undefined is not in the JSON.
  const ofSome = { jobs: jobs.length === 0 ? undefined : ofJobs, rates, owners, ...quotas, usage };
  const isUsual = Object.values(ofSome).every((one) => one === undefined);
  const callLimits = isUsual ? ofOthers : { ...ofOthers, ...ofSome };
  const numbers = new Map<string, number>();
  const ready: string[] = [];
  const lanes = [];
  for (const { lane, window = NO_WINDOW } of applicants) {
    if (numbers.has(laneText(lane))) continue;
    numbers.set(laneText(lane), ready.push(laneKeys(lane).ready));
    lanes.push({ base: modelTag(lane), pin: pinText(lane), window });
  }
  const keys = { load: loadKeyBeside(record), calls: record, ready };
  const { admitted, loads } = await script(redis, keys, {
    gateway,
    limits: JSON.stringify(callLimits),
    mostWaiting: limits.waitingPerSequence,
    short: shortScripts ? 1 : 0,
    tags,
    number,
    acknowledged,
    recordMs: CALLS_KEPT_MS,
    requestCount: applicants.length,
    lanes,
    requests: applicants.map((applicant) => requestOf(applicant, numbers.get(laneText(applicant.lane)) ?? 0)),
    jobs,
  });
  shares?.note(bucket, loads);
  if (admitted.said === "answered") noteRefused(applicants, admitted.admissions, shares);
  return admitted;
}

/** The arguments of a request, in the lane with this number. */
function requestOf(applicant: Applicant, lane: number) {
  const { frame, digest, outcomeTtlMs, deadlineMs, attendedMs = "", sequence, waiting = usualTerms } = applicant;
  return {
    lane,
    name: requestName(applicant),
    frame,
    digest,
    ttl: outcomeTtlMs,
    deadline: deadlineMs,
    attended: attendedMs,
    sequence: sequence?.name ?? "",
    flags: sequence === undefined ? 0 : flagsOf(sequence),
    step: sequence?.number ?? "",
    terms: termsText(waiting),
    mostParked: waiting.mostParked ?? 0,
  };
}

function flagsOf({ start, end, mayBegin = false }: NonNullable<Applicant["sequence"]>): number {
  return (start ? 1 : mayBegin ? 4 : 0) + (end ? 2 : 0);
}

/**
 * Notes the bytes of requests that found no room in all queues together. Leaves out jobs, because
 * other requests may still find room.
 */
function noteRefused(applicants: readonly Applicant[], admissions: readonly Admission[], shares?: Shares): void {
  for (const [i, admission] of admissions.entries()) {
    if (admission.said !== "queue-full" || admission.limit !== "total-bytes") continue;
    const one = applicants[i];
    if (one !== undefined && one.job === undefined) shares?.noteFull(one.frame.length);
  }
}

function namesOf(applicants: readonly Applicant[]): CallNames {
  return {
    models: [...new Set(applicants.map(({ lane }) => lane.model))],
    tenants: [...new Set(applicants.map(({ tenant }) => tenant))],
    queued: queuedOf(applicants),
    sequences: sequencesOf(applicants),
    owners: applicants.some(({ owners }) => owners !== undefined)
      ? applicants.flatMap(({ owners = [] }) => owners)
      : undefined,
    quotas: applicants.some(({ quotas }) => quotas !== undefined)
      ? applicants.flatMap(({ quotas = [] }) => quotas)
      : undefined,
    largest: applicants.reduce((most, one) => Math.max(most, bytesOf(one)), 0),
  };
}

/** @returns undefined if no owner has a limit */
function ownersOfCall(applicants: readonly Applicant[], share: (owner: OwnerLimit) => number): CallLimits["owners"] {
  if (applicants.every(({ owners }) => owners === undefined)) return undefined;
  const all = new Map<string, OwnerLimit & { readonly of: number[] }>();
  for (const [i, { owners = [] }] of applicants.entries()) {
    for (const owner of owners) {
      const known = all.get(owner.name) ?? { name: owner.name, most: share(owner), of: [] };
      known.of.push(i + 1);
      all.set(owner.name, known);
    }
  }
  return [...all.values()];
}

/** The limits of tenants that have some of their own. */
export function queuedOf(applicants: readonly Pick<Applicant, "tenant" | "queued">[]): CallNames["queued"] {
  if (applicants.every(({ queued }) => queued === undefined)) return undefined;
  const own = applicants.flatMap(({ tenant, queued }) => (queued === undefined ? [] : [[tenant, queued] as const]));
  return new Map(own);
}

/** The limits of sequences of tenants whose requests may begin one. */
function sequencesOf(applicants: readonly Applicant[]): CallNames["sequences"] {
  const own = applicants.flatMap(({ tenant, sequence, liveSequences }) =>
    liveSequences !== undefined && (sequence?.start === true || sequence?.mayBegin === true)
      ? [[tenant, liveSequences] as const]
      : [],
  );
  return own.length === 0 ? undefined : new Map(own);
}

/** The tags of the buckets of these requests. */
function bucketsOf(applicants: readonly Applicant[]): string {
  return [...new Set(applicants.map(({ lane }) => bucketTag(lane.bucket)))].join(" ");
}

/** The tags of all buckets, by how many there are, so that each text is built once. */
const allTags = new Map<number, string>();

function tagsOf(buckets: number): string {
  const tags = allTags.get(buckets) ?? Array.from({ length: buckets }, (_, bucket) => bucketTag(bucket)).join(" ");
  allTags.set(buckets, tags);
  return tags;
}
