/** `/v2/models/<m>/schedules` and `/v2/schedules`: jobs that Baton submits again and again. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import type { Context } from "hono";
import { fixedError, InferenceError } from "#shared/errors.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { Bodies } from "../http/bodies.js";
import { readIdempotencyKey } from "../http/headers.js";
import type { Limits } from "../http/limits.js";
import { readQuery } from "../http/query.js";
import { noContent, withHeaders, type Reply } from "../http/reply.js";
import type { GatewayEnv, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import type { Jobs } from "../job-paths/jobs.js";
import { modelName, modelPaths, modelVersion } from "../kserve/http/path.js";
import { readLimit, unknownPlace } from "../webhooks/page.js";
import { readSchedule } from "./read-schedule.js";
import { newSchedule, paused, renderSchedule, resumed, type Schedule } from "./schedule.js";
import type { Schedules, StoredSchedule } from "./schedules.js";

export interface ScheduleRoutesOptions {
  readonly schedules: Schedules;
  /** The deployment's secret, so that a client cannot guess the id of a schedule. */
  readonly secret: () => Buffer;
}

export interface HttpOptions {
  readonly jobs: Jobs;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

const ID_BYTES = 16;

export function addScheduleRoutes(
  router: Router,
  { schedules, secret }: ScheduleRoutesOptions,
  { jobs, bodies, limits, tenantOf }: HttpOptions,
): void {
  const nameOf = (c: Context<GatewayEnv>) => ({ tenant: tenantOf(c.env.incoming), id: c.req.param("id") ?? "" });
  const idFor = (tenant: string, key: string | undefined): string => {
    const bytes =
      key === undefined
        ? randomBytes(ID_BYTES)
        : createHmac("sha256", secret())
            .update(JSON.stringify(["schedule", tenant, key]))
            .digest();
    return `sched_${bytes.subarray(0, ID_BYTES).toString("base64url")}`;
  };
  const change = async (c: Context<GatewayEnv>, how: (schedule: Schedule, now: number) => Schedule): Promise<Reply> => {
    const name = nameOf(c);
    const now = await askRedis(() => schedules.now());
    const changed = await changeInRedis(() => schedules.change(name, (schedule) => how(schedule, now)));
    return shown(changed);
  };

  for (const path of modelPaths) {
    router.add(`${path}/schedules`, {
      POST: async (c) => {
        const { incoming } = c.env;
        const [tenant, model, version] = [tenantOf(incoming), modelName(c), modelVersion(c)];
        const key = readIdempotencyKey(incoming.headers);
        const target = jobs.submissions.target({ tenant, model, version });
        const now = await askRedis(() => schedules.now());
        const accepted = { maxBytes: limits.controlBytes, encoding: incoming.headers["content-encoding"] };
        const { asked, job } = await bodies.use(incoming, accepted, async (body) => {
          const read = readSchedule(body, { model, version }, now);
          const { webhook } = await jobs.submissions.read(target, read.job);
          // Each job would draw a new secret, and no view would show the secret to a client.
          if (webhook !== undefined && "url" in webhook.shown) throw hasOwnUrl();
          return read;
        });
        const schedule = newSchedule(asked, { id: idFor(tenant, key), tenant }, now);
        const digest = createHash("sha256").update(JSON.stringify(asked)).update(job).digest("base64url");
        const isReplayed = await changeInRedis(() => schedules.make(schedule, job, digest));
        // A schedule from an earlier call may have changed since.
        const stored = isReplayed ? await askRedis(() => schedules.find(schedule)) : { schedule, job };
        const headers = {
          location: `/v2/schedules/${schedule.id}`,
          ...(isReplayed && key !== undefined && { "idempotent-replayed": "true" }),
        };
        return withHeaders(shown(stored, 201), headers);
      },
    });
  }
  router.add("/v2/schedules", {
    GET: async (c) => {
      const { limit, after } = readQuery(c.env.incoming, ["limit", "after"]);
      const most = readLimit(limit);
      const found = await askRedis(() => schedules.list(tenantOf(c.env.incoming), most, after));
      if (found === undefined) throw unknownPlace();
      const { page, hasMore } = found;
      const ids = [page.at(0), page.at(-1)].map((one) => JSON.stringify(one?.schedule.id ?? null));
      const data = page.map(({ schedule, job }) => renderSchedule(schedule, job)).join(",");
      return json(`{"object":"list","data":[${data}],"first_id":${ids[0]},"last_id":${ids[1]},"has_more":${hasMore}}`);
    },
  });
  router.add("/v2/schedules/:id", {
    GET: async (c) => shown(await askRedis(() => schedules.find(nameOf(c)))),
    DELETE: async (c) => {
      const name = nameOf(c);
      const found = await askRedis(() => schedules.find(name));
      if (found === undefined) throw fixedError("unknown_schedule", "usual");
      await changeInRedis(() => schedules.change(name, () => undefined));
      return noContent;
    },
  });
  router.add("/v2/schedules/:id/pause", {
    POST: (c) => change(c, (schedule) => paused(unlessEnded(schedule))),
  });
  router.add("/v2/schedules/:id/resume", {
    POST: (c) => change(c, (schedule, now) => resumed(unlessEnded(schedule), now)),
  });
}

/** @throws InferenceError `schedule_ended` */
function unlessEnded(schedule: Schedule): Schedule {
  if (schedule.state === "ended") throw fixedError("schedule_ended", "usual");
  return schedule;
}

/** @throws InferenceError `unknown_schedule` */
function shown(stored: StoredSchedule | undefined, status = 200): Reply {
  if (stored === undefined) throw fixedError("unknown_schedule", "usual");
  return json(renderSchedule(stored.schedule, stored.job), status);
}

function json(body: string, status = 200): Reply {
  return { status, headers: { "content-type": "application/json" }, body: [body] };
}

function hasOwnUrl(): InferenceError {
  return new InferenceError(
    "invalid_argument",
    "job.webhook must name a webhook by its id: the secret of a url is shown to nobody here",
  );
}
