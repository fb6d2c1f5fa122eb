/** OpenAI's paths, so that its clients work as they are. All under `/v1/` answers in OpenAI's form, what is refused too. */
import type { Context, Hono } from "hono";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { InferenceError } from "#shared/errors.js";
import { textBodyLimit, usualDeadline } from "../generation/cost.js";
import type { Generate } from "../inference.js";
import type { ModelDirectory } from "../models.js";
import { prefersAsync } from "../requests/prefer.js";
import { onlyTenant } from "../tenant.js";
import type { Bodies } from "../v2/bodies.js";
import { readIdempotencyKey } from "../v2/idempotency-key.js";
import type { Limits } from "../v2/limits.js";
import { parseRequestJson } from "../v2/parse-infer.js";
import { send, type Reply } from "../v2/reply.js";
import type { GatewayEnv } from "../v2/routes.js";
import { answer } from "./answer.js";
import { chatJob } from "./chat.js";
import { completionJob } from "./completions.js";
import { openAiRefusal } from "./errors.js";
import { listModels, retrieveModel } from "./models.js";

export interface OpenAiOptions {
  readonly directory: () => ModelDirectory;
  readonly generate: Generate;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly onBug: (error: unknown, c: Context<GatewayEnv>) => void;
}

/** Undefined where it has answered by itself. */
type Handler = (c: Context<GatewayEnv>) => Reply | undefined | Promise<Reply | undefined>;

export function addOpenAiRoutes(app: Hono<GatewayEnv>, options: OpenAiOptions): void {
  const { directory, generate, bodies, limits } = options;

  const guarded =
    (handler: Handler) =>
    async (c: Context<GatewayEnv>): Promise<Response> => {
      try {
        const reply = await handler(c);
        return reply === undefined ? RESPONSE_ALREADY_SENT : send(c.env.outgoing, reply);
      } catch (error) {
        if (error instanceof InferenceError) return send(c.env.outgoing, openAiRefusal(error));
        options.onBug(error, c);
        return send(c.env.outgoing, openAiRefusal(new InferenceError("internal", "internal error")));
      }
    };
  const route = (method: "GET" | "POST", path: string, handler: Handler): void => {
    app.on(method, path, guarded(handler));
    app.all(
      path,
      guarded((c) => {
        throw new InferenceError("method_not_allowed", `Not allowed to ${c.req.method} on ${c.req.path}`);
      }),
    );
  };
  const generation =
    (job: typeof completionJob): Handler =>
    async ({ env: { incoming, outgoing } }) => {
      const idempotencyKey = readIdempotencyKey(incoming.headers);
      const accepted = { maxBytes: textBodyLimit(limits), encoding: incoming.headers["content-encoding"] };
      const body = await bodies.use(incoming, accepted, (bytes) => parseRequestJson(bytes));
      const terms = {
        tenant: onlyTenant,
        deadlineMs: usualDeadline(limits),
        background: prefersAsync(incoming.headers),
      };
      return answer(job(body, directory(), idempotencyKey, terms), generate, outgoing);
    };

  route("GET", "/v1/models", () => listModels(directory()));
  route("GET", "/v1/models/:model", (c) => retrieveModel(directory(), c.req.param("model") ?? ""));
  route("POST", "/v1/completions", generation(completionJob));
  route("POST", "/v1/chat/completions", generation(chatJob));
  app.all(
    "/v1/:rest{.+}",
    guarded((c) => {
      throw new InferenceError("not_found", `Unknown request URL: ${c.req.method} ${c.req.path}`);
    }),
  );
}
