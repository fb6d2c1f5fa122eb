/** The requests of a caller for a model that have not ended, page by page. */
import { hasStreams, type ServedModel } from "#shared/contract/announcement.js";
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { encodedIdOf, encodeRequestId, parseRequestName } from "#shared/queue/address.js";
import { listOpen, type OpenRequest } from "#shared/queue/admission/list-open.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import { readPage } from "./place.js";

export const openStates = ["queued", "running"] as const;
export type OpenState = (typeof openStates)[number];

export interface OpenDescription {
  readonly id: string;
  readonly state: string;
  readonly admitted_at: string | null;
  /** The level of a request that waits on other terms than the usual. */
  readonly priority: number | null;
  readonly sequence_id: bigint | string | null;
  readonly step: number | null;
  readonly worker: string | null;
  /** How often a worker has taken the request. */
  readonly deliveries: number;
  /** Whether the request has a stream, which `/v2/requests/<id>/events` reads. */
  readonly stream: boolean;
  /** How many records the stream has; null without a stream. */
  readonly index: number | null;
}

export interface OpenSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
}

export interface OpenAsked {
  /** The most requests of the page. */
  readonly limit: number;
  /** The `next` of the page before; undefined for the first page. */
  readonly after: string | undefined;
  readonly tenant: string;
  readonly model: ServedModel;
  readonly version: string | undefined;
  readonly state: OpenState | undefined;
}

export interface OpenPage {
  readonly requests: readonly OpenDescription[];
  readonly next: string | undefined;
}

/**
 * The most calls of Redis for a page. So many calls look at up to 50 000 open requests, perhaps all
 * of others.
 */
const MOST_CALLS = 50;

/** @throws InferenceError `unavailable`, or `invalid_argument` for a wrong `after` */
export async function openRequests({ redis, buckets }: OpenSettings, asked: OpenAsked): Promise<OpenPage> {
  const { tenant, model, version, state, limit, after } = asked;
  // Outside of a Cluster the counts of all buckets are one.
  const listing = { limit, after, buckets: redis.isCluster ? buckets : 1, mostReads: MOST_CALLS };
  const { items, next } = await readPage(listing, async (from, most) => {
    const page = await askRedis(() =>
      listOpen(redis, from.bucket, { model: model.name, tenant, version, state, most }, from),
    );
    return { items: page.requests.map((one) => describe(one, model, buckets)), next: page.next };
  });
  return { requests: items, next };
}

function describe(one: OpenRequest, served: ServedModel, buckets: number): OpenDescription {
  const { name: model } = served;
  const tag = one.name.slice(0, one.name.indexOf("}") + 1);
  const bucket = Array.from({ length: buckets }, (_, i) => i).find((i) => bucketTag(i) === tag) ?? 0;
  const name = parseRequestName(one.name.slice(`${tag}:${model}:`.length));
  const isStream = hasStreams(served);
  return {
    id: encodeRequestId({ bucket, model, ...name }),
    state: one.state,
    admitted_at: one.at === undefined ? null : new Date(one.at).toISOString(),
    // A rank is twice the level, and odd for a request that has waited past its time.
    priority: one.rank === undefined ? null : Math.floor(one.rank / 2),
    sequence_id: one.sequence === "" ? null : decodeCorrelationId(encodedIdOf(one.sequence)).value,
    step: one.step ?? null,
    worker: one.worker === "" ? null : one.worker,
    deliveries: one.deliveries,
    stream: isStream,
    index: isStream ? one.records : null,
  };
}
