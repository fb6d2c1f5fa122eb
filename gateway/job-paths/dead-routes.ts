/** `/v2/dead`: requests that workers have set aside. */
import type { Context } from "hono";
import { InferenceError } from "#shared/errors.js";
import { jsonReply, type Reply } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import type { DeadRequests } from "./dead.js";
import { readLimit, readParameters } from "./query.js";

export interface DeadRoutesOptions {
  readonly dead: DeadRequests;
  readonly tenantOf: TenantOf;
  /** Runs a job once more. */
  readonly retry: (c: Context<GatewayEnv>, job: string) => Promise<Reply>;
}

export function addDeadRoutes(router: Router, { dead, tenantOf, retry }: DeadRoutesOptions): void {
  router.add("/v2/dead", {
    GET: async (c) => {
      const known = readParameters(c.env.incoming.url ?? "", ["model", "limit", "after"]);
      const after = known.get("after");
      const page = await dead
        .list(tenantOf(c.env.incoming), known.get("model"), readLimit(known.get("limit")), after)
        .catch((error: unknown) => {
          if (!(error instanceof InferenceError && error.code === "unknown_dead")) throw error;
          throw new InferenceError("invalid_argument", "after must be the id of a request that was set aside", {
            cause: error,
          });
        });
      const { dead: data, hasMore, last } = page;
      return jsonReply({ object: "list", data, first_id: data.at(0)?.id ?? null, last_id: last, has_more: hasMore });
    },
  });
  router.add("/v2/dead/:id", { GET: async (c) => jsonReply(await dead.view(tenantOf(c.env.incoming), idOf(c))) });
  router.add("/v2/dead/:id/retry", {
    POST: async (c) => {
      const id = idOf(c);
      const reply = await retry(c, await dead.jobOf(tenantOf(c.env.incoming), id));
      await dead.forget(id);
      return reply;
    },
  });
}

function idOf(c: Context<GatewayEnv>): string {
  return c.req.param("id") ?? "";
}
