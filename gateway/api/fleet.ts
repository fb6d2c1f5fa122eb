/** `/v2/fleet`: the workers, the models that they serve, and the load of the queue. */
import { z } from "zod";
import { durabilities } from "#shared/durability.js";
import type { Fleet } from "../fleet/watch.js";
import { jsonReply } from "../formats/reply.js";
import { endpointsOf } from "./endpoint/endpoint.js";

const endpoint = endpointsOf<Pick<Fleet, "describe">>();

const count = z.number();

const deviceShape = () =>
  z.strictObject({
    provider: z.string(),
    gpu: count.optional(),
    name: z.string().optional(),
    memory: z.strictObject({ total_bytes: count, used_bytes: count }).optional(),
  });

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
  });

const modelShape = () =>
  z.strictObject({
    name: z.string(),
    version: z.string(),
    digest: z.string(),
    workers: count,
    queued: count,
    running: count,
    live_sequences: count.optional(),
    set_aside: count,
    warnings: z.array(z.string()).optional(),
  });

const processesShape = () =>
  z.array(z.strictObject({ name: z.string(), host: z.string(), pid: z.number(), started_at: z.string() })).optional();

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

export const fleetEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/fleet",
    right: "use",
    // A caller without the tenant header, for example an operator, sees no tenant's figures.
    isTenantOptional: true,
    does: "Shows the workers, the models that they serve, and the load of the queue.",
    answers: { 200: { says: "The fleet as it is now.", shape: fleetShape } },
    handle: async ({ caller }, fleet) => jsonReply(await fleet.describe(caller.tenant)),
  }),
];
