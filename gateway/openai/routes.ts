/**
 * Adds OpenAI's paths, so that OpenAI's clients work without changes. Every answer under `/v1/` has
 * OpenAI's form, refusals too.
 */
import { InferenceError } from "#shared/errors.js";
import { usualDeadline } from "../generation/limits.js";
import type { Inference } from "../admission/inference.js";
import type { Fleet } from "../fleet/watch.js";
import type { Bodies } from "../http/bodies.js";
import { prefersAsync, readIdempotencyKey } from "../http/headers.js";
import { textBodyLimit, type Limits } from "../http/limits.js";
import { parseRequestJson } from "#shared/json/members.js";
import type { TenantOf } from "../http/tenant.js";
import type { Handler, Router } from "../http/router.js";
import { answer } from "./answer.js";
import { parseChatRequest } from "./chat.js";
import { parseCompletionRequest } from "./completions.js";
import { listModels, retrieveModel } from "./models.js";

export interface OpenAiOptions {
  readonly fleet: Fleet;
  readonly inference: Inference;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

export function addOpenAiRoutes(router: Router, options: OpenAiOptions): void {
  const { fleet, inference, bodies, limits, tenantOf } = options;

  const generation =
    (parse: typeof parseCompletionRequest): Handler =>
    async ({ env: { incoming, outgoing } }) => {
      const idempotencyKey = readIdempotencyKey(incoming.headers);
      const accepted = { maxBytes: textBodyLimit(limits), encoding: incoming.headers["content-encoding"] };
      const body = await bodies.use(incoming, accepted, (bytes) => parseRequestJson(bytes));
      const terms = {
        tenant: tenantOf(incoming),
        deadlineMs: usualDeadline(limits),
        background: prefersAsync(incoming.headers),
      };
      return answer(parse(body, fleet.directory, idempotencyKey, terms), inference, outgoing);
    };

  router.add("/v1/models", { GET: () => listModels(fleet.directory) });
  router.add("/v1/models/:model", { GET: (c) => retrieveModel(fleet.directory, c.req.param("model") ?? "") });
  router.add("/v1/completions", { POST: generation(parseCompletionRequest) });
  router.add("/v1/chat/completions", { POST: generation(parseChatRequest) });
  router.addForAll("/v1/:rest{.+}", (c) => {
    throw new InferenceError("not_found", `Unknown request URL: ${c.req.method} ${c.req.path}`);
  });
}
