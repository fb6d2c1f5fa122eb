/** `/v1/batches`: OpenAI's paths for batches. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import type { Context } from "hono";
import { fixedError } from "#shared/errors.js";
import { parseRequestJson } from "#shared/json/members.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { Files } from "../files/files.js";
import type { Bodies } from "../http/bodies.js";
import { ParameterError } from "../generation/parameters.js";
import { isRefusal } from "../http/errors.js";
import { readIdempotencyKey } from "../http/headers.js";
import type { Limits } from "../http/limits.js";
import { readQuery, withoutOthers } from "../http/query.js";
import { jsonReply, withHeaders } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import { listOf, readLimit, unknownPlace } from "../webhooks/page.js";
import { newBatch, usedForMs, viewOf } from "./batch.js";
import type { Batches } from "./batches.js";
import { readCreate } from "./create.js";

export interface BatchRoutesOptions {
  readonly batches: Batches;
  readonly files: Files;
  /**
   * The deployment's secret. If the client sends an Idempotency-Key, the batch's id is an HMAC of
   * the key under this secret.
   */
  readonly secret: () => Buffer;
}

export interface HttpOptions {
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

const ID_BYTES = 18;
/** After these refusals there is no batch, or only a batch of another order under the same key. */
const notMade: readonly string[] = ["batch_limit", "unavailable", "idempotency_mismatch"];
const members = ["input_file_id", "endpoint", "completion_window", "metadata"];

export function addBatchRoutes(
  router: Router,
  { batches, files, secret }: BatchRoutesOptions,
  { bodies, limits, tenantOf }: HttpOptions,
): void {
  const idOf = (tenant: string, key: string | undefined) => {
    const made = createHmac("sha256", secret()).update(JSON.stringify(["batch", tenant, key ?? null]));
    const bytes = key === undefined ? randomBytes(ID_BYTES) : made.digest().subarray(0, ID_BYTES);
    return `batch_${bytes.toString("base64url")}`;
  };
  const named = async (c: Context<GatewayEnv>) => {
    const tenant = tenantOf(c.env.incoming);
    const found = await askRedis(() => batches.read(tenant, c.req.param("id") ?? ""));
    if (found === undefined) throw fixedError("unknown_batch", "usual");
    return found.batch;
  };

  router.add("/v1/batches", {
    GET: async (c) => {
      const { limit, after } = readQuery(c.env.incoming, ["limit", "after"]);
      const most = readLimit(limit);
      const found = await askRedis(() => batches.list(tenantOf(c.env.incoming), after, most + 1));
      if (found === undefined) throw unknownPlace();
      return jsonReply(listOf(found.slice(0, most).map(viewOf), found.length > most));
    },
    POST: async (c) => {
      const { incoming } = c.env;
      const tenant = tenantOf(incoming);
      const key = readIdempotencyKey(incoming.headers);
      const terms = { maxBytes: limits.controlBytes, encoding: incoming.headers["content-encoding"] };
      const asked = await bodies.use(incoming, terms, (bytes) =>
        readCreate(withoutOthers(parseRequestJson(bytes), members)),
      );
      const { windowMs, ...given } = asked;
      const id = idOf(tenant, key);
      const digest = createHash("sha256").update(JSON.stringify(asked)).digest("base64url");
      const input = { tenant, id: asked.inputFile };
      // A batch from an earlier call may have outlived its file.
      const isThere = key !== undefined && (await askRedis(() => batches.read(tenant, id))) !== undefined;
      const now = await askRedis(() => batches.now());
      const batch = newBatch({ ...given, id, tenant, digest }, now, windowMs);
      if (!isThere) {
        checkPurpose(asked.inputFile, await files.find(input));
        if (!(await files.use(input, id, usedForMs(batch, now)))) checkPurpose(asked.inputFile, undefined);
      }
      try {
        const { batch: made, isReplayed } = await changeInRedis(() => batches.make(batch));
        return withHeaders(jsonReply(viewOf(made)), isReplayed ? { "idempotent-replayed": "true" } : {});
      } catch (error) {
        // If the batch may exist after all, the process that runs it releases the file.
        if (isRefusal(error) && notMade.includes(error.code)) {
          // Another gateway may have made a batch under the same key.
          const there = await askRedis(() => batches.read(tenant, id));
          if (there?.batch.inputFile !== asked.inputFile) await files.release(input, id);
        }
        throw error;
      }
    },
  });
  router.add("/v1/batches/:id", { GET: async (c) => jsonReply(viewOf(await named(c))) });
  router.add("/v1/batches/:id/cancel", {
    POST: async (c) => {
      const { id, tenant } = await named(c);
      return jsonReply(viewOf(await changeInRedis(() => batches.cancel(tenant, id))));
    },
  });
}

/** @throws InferenceError */
function checkPurpose(id: string, found: { readonly purpose: string } | undefined): void {
  if (found === undefined) throw new ParameterError("input_file_id", `there is no file '${id}'`);
  if (found.purpose === "batch") return;
  throw new ParameterError("input_file_id", `the purpose of file '${id}' must be batch, not ${found.purpose}`);
}
