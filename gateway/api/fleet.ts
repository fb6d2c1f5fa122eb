/** `/v2/fleet`: the workers, the models that they serve, and the load of the queue. */
import { z } from "zod";
import { durabilities } from "#shared/durability.js";
import { InferenceError } from "#shared/errors.js";
import type { Fleet } from "../fleet/watch.js";
import { jsonReply } from "../formats/reply.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { pageSize, type Parameter } from "./endpoint/parameters.js";

const repository = endpointsOf<Fleet>("model-repository");
const statistics = endpointsOf<Fleet>("statistics");
const other = endpointsOf<Fleet>("none");

const count = z.number();

const deviceShape = () =>
  z.strictObject({
    provider: z.string(),
    gpu: count.optional(),
    name: z.string().optional(),
    memory: z.strictObject({ total_bytes: count, used_bytes: count }).optional(),
  });

const loadMembers = { cpu_ratio: count, event_loop_ms: count, memory_bytes: count };

const workerShape = () =>
  z.strictObject({
    name: z.string(),
    host: z.string(),
    pid: z.number(),
    started_at: z.string(),
    device: deviceShape().optional(),
    models: z.array(
      z.strictObject({
        name: z.string(),
        version: z.string(),
        provider: z.string().optional(),
        gpu: count.optional(),
      }),
    ),
    failed: z.array(z.strictObject({ name: z.string(), version: z.string().optional(), reason: z.string() })),
    metrics: z.string().optional(),
    version: z.string().optional(),
    beat_age_ms: count.optional(),
    load: z
      .strictObject({
        ...loadMembers,
        steps_per_second: count,
        tokens_per_second: count,
        busy_ratio: count,
        held: count,
      })
      .optional(),
  });

const modelShape = () =>
  z.strictObject({
    name: z.string(),
    version: z.string(),
    digest: z.string(),
    kind: z.enum(["tensor", "sequence", "generator"]),
    workers: count,
    queued: count,
    running: count,
    live_sequences: count.optional(),
    set_aside: count,
    steps_per_second: count.optional(),
    oldest_ms: count.optional(),
    warnings: z.array(z.string()).optional(),
  });

const processesShape = () =>
  z
    .array(
      z.strictObject({
        name: z.string(),
        host: z.string(),
        pid: z.number(),
        started_at: z.string(),
        metrics: z.string().optional(),
        version: z.string().optional(),
        load: z.strictObject(loadMembers).optional(),
        connections: z.strictObject({ http: count, grpc: count.optional() }).optional(),
      }),
    )
    .optional();

const queueShape = () => {
  const load = { requests: count, bytes: count };
  const loads = z.array(z.strictObject({ name: z.string(), ...load }));
  return z.strictObject({
    ...load,
    models: loads,
    tenants: loads,
    results: z.strictObject({ count, bytes: count }),
    delayed: z.strictObject({ jobs: count, bytes: count }),
    limits: z
      .strictObject({
        model_requests: count,
        model_bytes: count.optional(),
        model_sequences: count,
        tenant_requests: count.optional(),
        tenant_bytes: count.optional(),
        bytes: count.optional(),
        result_bytes: count.optional(),
        tenant_delayed: count.optional(),
        delayed_bytes: count.optional(),
      })
      .optional(),
  });
};

export const fleetShape = () =>
  z.strictObject({
    durability: z.enum(durabilities).optional(),
    unserved: z.array(z.strictObject({ buckets: z.array(z.number()), reason: z.string() })).optional(),
    workers: z.array(workerShape()),
    models: z.array(modelShape()),
    gateways: processesShape(),
    jobs: processesShape(),
    queue: queueShape(),
    gone_back: z.strictObject({ times: count, lost_calls: count, last_at: z.string(), error: z.string() }).optional(),
  });

/** The part of the fleet that keys without the right `operator` see: no host, no other tenant. */
export const ownFleetShape = () =>
  z.strictObject({
    models: z.array(z.strictObject({ name: z.string(), version: z.string(), digest: z.string() })),
    queue: z.strictObject({ tenants: z.array(z.strictObject({ name: z.string(), requests: count, bytes: count })) }),
  });

const targetsShape = () =>
  z.array(
    z.strictObject({
      targets: z.array(z.string()),
      labels: z.strictObject({
        baton_role: z.enum(["gateway", "jobs", "worker"]),
        baton_process: z.string(),
      }),
    }),
  );

export const historyShape = () =>
  z.strictObject({
    step_ms: count,
    at: z.array(count),
    series: z.record(z.string(), z.record(z.string(), z.array(count.nullable()))),
  });

const minutes: Parameter<number> = {
  ...pageSize(15, 30),
  says: "How far the answer goes back.",
};

/** Each model of an answer has thousands of values. */
const MOST_MODELS = 100;

const models: Parameter<readonly string[] | undefined> = {
  schema: { type: "string" },
  says: "The names of models, comma-separated; absent: all.",
  read([given], name) {
    const names = given?.split(",");
    if (names === undefined || names.length <= MOST_MODELS) return names;
    throw new InferenceError("invalid_argument", `${name} may name ${MOST_MODELS} models`);
  },
};

export const fleetEndpoints = [
  repository({
    method: "GET",
    path: "/v2/fleet",
    right: "read",
    // A caller without the tenant header, for example an operator, sees no tenant's figures.
    isTenantOptional: true,
    does: "Shows the workers, their models and the queue; to a key that is no operator's, its models and its own load.",
    answers: { 200: { says: "The fleet as it is now.", shape: () => z.union([fleetShape(), ownFleetShape()]) } },
    async handle(asked, fleet) {
      const { tenant } = asked.caller;
      if (asked.caller.may("operator")) return jsonReply(await fleet.describe(tenant));
      const models = asked.models(fleet).all();
      return jsonReply({
        models: models.map(({ name, version, digest }) => ({ name, version, digest })),
        queue: { tenants: [{ name: tenant, ...(await fleet.loadOf(tenant)) }] },
      });
    },
  }),
  other({
    method: "GET",
    path: "/v2/fleet/targets",
    right: "operator",
    isTenantOptional: true,
    does: "Names every process with metrics for Prometheus (`http_sd`); the token of metrics opens the path, too.",
    answers: { 200: { says: "The addresses of metrics.", shape: targetsShape } },
    handle: async (_, fleet) => jsonReply(await fleet.targets()),
  }),
  statistics({
    method: "GET",
    path: "/v2/fleet/history",
    right: "operator",
    isTenantOptional: true,
    does: "Shows how the queue and the work of each model stood in the last minutes.",
    query: { minutes, models },
    answers: {
      200: { says: "A value for each time and model; null for a time of which nothing is known.", shape: historyShape },
    },
    refusals: ["unavailable"],
    handle: async ({ query }, fleet) => jsonReply(await fleet.history(query.minutes, query.models)),
  }),
];
