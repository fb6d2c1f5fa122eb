/** `/v2/models/<m>[/versions/<v>]/sequences`: the operations on sequences as a whole. */
import type { Context } from "hono";
import { InferenceError } from "#shared/errors.js";
import { parseRequestJson, required } from "#shared/json/members.js";
import type { JsonObject } from "#shared/json/parse.js";
import { readCorrelationId } from "../admission/request-terms.js";
import type { ModelDirectory } from "../fleet/models.js";
import type { Bodies } from "../http/bodies.js";
import { readIdempotencyKey } from "../http/headers.js";
import { stateBodyLimit, type Limits } from "../http/limits.js";
import { readQuery, withoutOthers } from "../http/query.js";
import { jsonReply } from "../http/reply.js";
import { pathOf, type GatewayEnv, type Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import { modelName, modelPaths, modelVersion } from "../kserve/http/path.js";
import { checkSequenceId } from "../kserve/validate.js";
import { readPlace } from "./page.js";
import { readSequenceId, type Change, type Named, type OfModel } from "./sequence-id.js";
import type { Sequences } from "./sequences.js";

export interface SequenceRoutesOptions {
  readonly fleet: { readonly directory: ModelDirectory };
  readonly sequences: Sequences;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly tenantOf: TenantOf;
}

const DEFAULT_PAGE = 100;
const LONGEST_PAGE = 1_000;

export function addSequenceRoutes(router: Router, options: SequenceRoutesOptions): void {
  const { fleet, sequences, bodies, limits, tenantOf } = options;

  const ofModel = (c: Context<GatewayEnv>): OfModel => {
    const version = modelVersion(c);
    return { tenant: tenantOf(c.env.incoming), model: fleet.directory.find(modelName(c), version), version };
  };
  const named = (c: Context<GatewayEnv>, query: { readonly type?: string }): Named => {
    const segments = pathOf(c.env.incoming.url ?? "").split("/");
    const id = segments[modelVersion(c) === undefined ? 5 : 7] ?? "";
    return { ...ofModel(c), id: readSequenceId(id, query.type) };
  };
  const change = (c: Context<GatewayEnv>): Change => {
    const idempotencyKey = readIdempotencyKey(c.env.incoming.headers);
    return { ...named(c, readQuery(c.env.incoming, ["type"])), idempotencyKey };
  };
  const body = (c: Context<GatewayEnv>, members: readonly string[]): Promise<JsonObject> => {
    const { incoming } = c.env;
    const terms = { maxBytes: limits.controlBytes, encoding: incoming.headers["content-encoding"] };
    return bodies.use(incoming, terms, (bytes) => withoutOthers(parseRequestJson(bytes), members));
  };

  for (const path of modelPaths) {
    router.add(`${path}/sequences`, {
      GET: async (c) => {
        const { limit, after } = readQuery(c.env.incoming, ["limit", "after"]);
        const place = after === undefined ? undefined : readPlace(after, sequences.buckets);
        return jsonReply(await sequences.list(ofModel(c), readLimit(limit), place));
      },
    });
    router.add(`${path}/sequences/:id`, {
      GET: async (c) => jsonReply(await sequences.describe(named(c, readQuery(c.env.incoming, ["type"])))),
      DELETE: async (c) => jsonReply(await sequences.end(change(c))),
    });
    router.add(`${path}/sequences/:id/fork`, {
      POST: async (c) => {
        const asked = change(c);
        const { sequence_id: id, step } = await body(c, ["sequence_id", "step"]);
        const to = readCorrelationId(required({ sequence_id: id } as JsonObject, "sequence_id"));
        checkSequenceId(asked.model, to);
        return jsonReply(await sequences.copies.fork(asked, to, step === undefined ? undefined : readStep(step)));
      },
    });
    router.add(`${path}/sequences/:id/rewind`, {
      POST: async (c) => {
        const asked = change(c);
        return jsonReply(await sequences.rewind(asked, readStep(required(await body(c, ["step"]), "step"))));
      },
    });
    router.add(`${path}/sequences/:id/state`, {
      GET: async (c) => {
        const query = readQuery(c.env.incoming, ["type", "step"]);
        const step = query.step === undefined ? undefined : readStep(Number(query.step || Number.NaN));
        const frame = await sequences.copies.export(named(c, query), step);
        return { status: 200, headers: { "content-type": "application/octet-stream" }, body: [frame] };
      },
      PUT: async (c) => {
        const { incoming } = c.env;
        const asked = change(c);
        checkSequenceId(asked.model, asked.id);
        const others = asked.version === undefined ? fleet.directory.others(asked.model) : [];
        const encoding = incoming.headers["content-encoding"];
        const terms = { maxBytes: stateBodyLimit(limits), jsonBytes: 0, encoding };
        return jsonReply(await bodies.use(incoming, terms, (bytes) => sequences.copies.import(asked, bytes, others)));
      },
    });
  }
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PAGE;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LONGEST_PAGE) return limit;
  throw new InferenceError("invalid_argument", `limit must be an integer from 1 to ${LONGEST_PAGE}, not '${text}'`);
}

function readStep(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
  throw new InferenceError("invalid_argument", "step must be an integer of at least 1, counted from the START");
}
