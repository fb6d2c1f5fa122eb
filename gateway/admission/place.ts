/** Where a request lies: which lane, and under which id. */
import { createHash, createHmac, randomUUID } from "node:crypto";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import type { GenerationRequest, InferenceRequest } from "../inference.js";

/** What every request has, whatever it asks for. */
export type AnyRequest = Pick<
  InferenceRequest & GenerationRequest,
  "model" | "tenant" | "sequence" | "idempotencyKey" | "deadlineMs"
>;

/** What decides where requests lie, the same at every gateway of a deployment. */
export interface PlaceTerms {
  readonly shards: number;
  /** See `Deployment`. */
  readonly secret: () => Buffer;
}

export function placeOf(request: AnyRequest, { shards, secret }: PlaceTerms): RequestAddress {
  const id = requestId(request, secret);
  const { model } = request;
  return { request: id, lane: { model: model.name, version: model.version, shard: shardOf(request, id, shards) } };
}

/**
 * Random, or derived from the client's key: then the outcome's own record is what recognises a
 * retry, at any gateway. Whoever knows an id may read and cancel the request, and keys are often
 * easy to guess (`order-1001`), so the deployment's secret goes into the id as well. Never derived
 * from the KServe `id`, which real clients set to the same value for everything.
 */
function requestId({ idempotencyKey, tenant, model }: AnyRequest, secret: () => Buffer): string {
  if (idempotencyKey === undefined) return randomUUID();
  const named = JSON.stringify([tenant, model.name, idempotencyKey]);
  return createHmac("sha256", secret()).update(named).digest().subarray(0, 16).toString("base64url");
}

/** All steps of a sequence share a lane; so do all tries of a keyed request. */
function shardOf({ sequence, tenant }: AnyRequest, id: string, shards: number): number {
  const what = sequence === undefined ? id : `${tenant}:${encodeCorrelationId(sequence.id)}`;
  return shards === 1 ? 0 : createHash("sha256").update(what).digest().readUInt32LE(0) % shards;
}
