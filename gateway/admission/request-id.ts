/**
 * Chooses a request's address before the request goes to the queue: its id, and its bucket. Every
 * gateway of a deployment chooses alike.
 */
import { createHmac, randomBytes } from "node:crypto";
import { bucketOf, type RequestAddress } from "#shared/queue/address.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import { realWorld, type World } from "#shared/world.js";
import type { AnyRequest } from "./inference.js";

/** The terms of addresses, the same at every gateway of a deployment. */
export interface AddressTerms {
  readonly buckets: number;
  /** The deployment's secret, which Redis keeps; see `Deployment`. */
  readonly secret: () => Buffer;
  readonly world?: World;
}

export function requestAddress(request: AnyRequest, terms: AddressTerms): RequestAddress {
  const { model, tenant, sequence, idempotencyKey, budget } = request;
  const encoded = sequence && encodeCorrelationId(sequence.id);
  const id = requestId(request, encoded, terms);
  const named = bucketOf(model.name, tenant, encoded ?? id, terms.buckets);
  const isFree = encoded === undefined && idempotencyKey === undefined;
  const bucket = (isFree ? budget?.nextBucket(named, terms.buckets) : undefined) ?? named;
  return { bucket, model: model.name, tenant, request: id };
}

/** The address of a new job. The same key means another request if a client waits for an answer. */
export function jobAddress(request: AnyRequest, terms: AddressTerms): RequestAddress {
  const { idempotencyKey } = request;
  // A header holds no line break, and no key derived from a header begins with one.
  const jobKey = idempotencyKey ?? randomBytes(32).toString("base64url");
  return requestAddress({ ...request, idempotencyKey: `\njob\n${jobKey}` }, terms);
}

/**
 * The id is random, or derived from the client's key. Then the outcome's own record recognises a
 * retry, at any gateway. A key counts within a sequence, because the record lies in the bucket of
 * the sequence. A client that knows an id may read and cancel the request, and keys are often easy
 * to guess (`order-1001`), so the id also contains the deployment's secret. The id never derives
 * from the KServe `id`, which real clients set to the same value for every request.
 * @param encoded the id of the sequence; undefined for a stateless request
 */
function requestId(
  { idempotencyKey, tenant, model }: AnyRequest,
  encoded: string | undefined,
  { secret, world = realWorld }: AddressTerms,
): string {
  if (idempotencyKey === undefined) return world.uuid();
  const named = JSON.stringify([tenant, model.name, encoded ?? null, idempotencyKey]);
  return createHmac("sha256", secret()).update(named).digest().subarray(0, 16).toString("base64url");
}
