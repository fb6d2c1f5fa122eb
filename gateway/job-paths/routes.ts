/**
 * `/v2/models/<m>[/versions/<v>]/jobs` and `/v2/jobs`: requests whose clients come back for the
 * result.
 */
import type { Context } from "hono";
import { errorKinds, fixedError } from "#shared/errors.js";
import type { JobFilters } from "#shared/queue/jobs/list.js";
import { jobStates, type JobState } from "#shared/queue/jobs/view.js";
import type { Bodies } from "../http/bodies.js";
import { readIdempotencyKey } from "../http/headers.js";
import type { Limits } from "../http/limits.js";
import { withHeaders, type Reply } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import { modelName, modelPaths, modelVersion } from "../kserve/http/path.js";
import { addDeadRoutes } from "./dead-routes.js";
import type { Jobs } from "./jobs.js";
import { readLabel } from "./options.js";
import { parametersOf, readLimit, refused, unknownParameter } from "./query.js";

export interface JobRoutesOptions {
  readonly jobs: Jobs;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

export function addJobRoutes(router: Router, options: JobRoutesOptions): void {
  const { jobs, bodies, limits, tenantOf } = options;

  for (const path of modelPaths) {
    router.add(`${path}/jobs`, {
      POST: async (c) => {
        const { incoming } = c.env;
        const version = modelVersion(c);
        const key = readIdempotencyKey(incoming.headers);
        const target = jobs.submissions.target(
          { tenant: tenantOf(incoming), model: modelName(c), version },
          key,
          () => {
            if (incoming.socket.destroyed) throw fixedError("cancelled", "clientGone");
          },
        );
        const accepted = { maxBytes: limits.controlBytes, encoding: incoming.headers["content-encoding"] };
        const sent = await bodies.use(incoming, accepted, (body) => jobs.submissions.read(target, body));
        const { id, view, isReplayed } = await jobs.submissions.submit(sent);
        const headers = { location: `/v2/jobs/${id}`, ...(isReplayed && { "idempotent-replayed": "true" }) };
        return withHeaders(json(view, 202), headers);
      },
    });
  }
  router.add("/v2/jobs", {
    GET: async (c) => {
      const { filters, limit, after } = readQuery(c.env.incoming.url ?? "");
      const page = await jobs.list(tenantOf(c.env.incoming), filters, limit, after);
      const ids = [page.jobs.at(0)?.id ?? null, page.last].map((id) => JSON.stringify(id));
      const data = page.jobs.map(({ view }) => view).join(",");
      return json(
        `{"object":"list","data":[${data}],"first_id":${ids[0]},"last_id":${ids[1]},"has_more":${page.hasMore}}`,
      );
    },
  });
  router.add("/v2/jobs/:id", {
    GET: async (c) => json((await jobs.view(tenantOf(c.env.incoming), idOf(c))).view),
    DELETE: async (c) => {
      const { view, isOver } = await jobs.cancel(tenantOf(c.env.incoming), idOf(c));
      return isOver ? endedBefore(view) : json(view);
    },
  });
  router.add("/v2/jobs/:id/result", { GET: (c) => jobs.result(tenantOf(c.env.incoming), idOf(c)) });
  const retry = async (c: Context<GatewayEnv>, name: string): Promise<Reply> => {
    const { id, view } = await jobs.retry(tenantOf(c.env.incoming), name);
    return withHeaders(json(view, 202), { location: `/v2/jobs/${id}` });
  };
  router.add("/v2/jobs/:id/retry", { POST: (c) => retry(c, idOf(c)) });
  addDeadRoutes(router, { dead: jobs.dead, tenantOf, retry });
}

function idOf(c: Context<GatewayEnv>): string {
  return c.req.param("id") ?? "";
}

function json(body: string, status = 200): Reply {
  return { status, headers: { "content-type": "application/json" }, body: [body] };
}

function endedBefore(view: string): Reply {
  const { status, texts } = errorKinds.already_ended;
  const { state } = JSON.parse(view) as { readonly state: JobState };
  return json(JSON.stringify({ error: texts.usual, code: "already_ended", state }), status);
}

interface Query {
  readonly filters: JobFilters;
  readonly limit: number;
  readonly after: string | undefined;
}

const queryNames = ["state", "model", "label", "schedule", "limit", "after"];

/**
 * Reads which jobs a list should have.
 * @throws InferenceError that names the wrong parameter
 */
function readQuery(url: string): Query {
  const known = new Map<string, string>();
  const labels: [string, string][] = [];
  for (const [name, value] of parametersOf(url)) {
    if (!queryNames.includes(name)) throw unknownParameter(name, queryNames);
    if (name === "label") {
      const label = readLabel(value);
      labels.push([label.name, label.value]);
      continue;
    }
    if (known.has(name)) throw refused(`'${name}' is given twice`);
    known.set(name, value);
  }
  const states = known.get("state")?.split(",").map(readState);
  const filters = {
    states,
    model: known.get("model"),
    schedule: known.get("schedule"),
    ...(labels.length > 0 && { labels }),
  };
  return { filters, limit: readLimit(known.get("limit")), after: known.get("after") };
}

function readState(text: string): JobState {
  const state = jobStates.find((one) => one === text);
  if (state !== undefined) return state;
  throw refused(`state must be of ${jobStates.join(", ")}, with commas between several, not '${text.slice(0, 64)}'`);
}
