/** Opens the app of a gateway: its paths, and the parts that only paths use. */
import { createRequire } from "node:module";
import type { Logger } from "pino";
import { SleepingStates } from "#shared/sleeping-states.js";
import { CallingInference } from "./admission/client-calls.js";
import { buildApp, type GatewayApp, type Services } from "./app.js";
import type { Assembly } from "./assemble.js";
import type { GatewayConfig } from "./config.js";
import { Bodies } from "./http/bodies.js";
import type { TenantOf } from "./http/tenant.js";
import { BatchService } from "./service/batches.js";
import { DeadService } from "./service/dead.js";
import { DeliveryService } from "./service/deliveries.js";
import { FileService } from "./service/files.js";
import { JobService } from "./service/jobs.js";
import { RequestService } from "./service/requests.js";
import { ScheduleService } from "./service/schedules.js";
import { SequenceService } from "./service/sequences.js";
import { SubscriptionService } from "./service/subscriptions.js";
import { WebhookService } from "./service/webhooks.js";
import { openSubscriptions } from "./subscriptions/open.js";
import { parseRanges } from "./webhooks/addresses.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };

export interface AppTerms {
  readonly config: GatewayConfig;
  readonly tenantOf: TenantOf;
  /** Whether the process takes no further requests. */
  readonly stopping: () => boolean;
  readonly log: Logger;
}

export function openApp(
  parts: Assembly,
  { config, tenantOf, stopping, log }: AppTerms,
): { readonly app: GatewayApp; readonly requests: RequestService } {
  const { redis, bus, fleet, loads, relay, inference, limits, parseThread, printThread } = parts;
  const requests = new RequestService({ redis, bus, relay, outcomeTtlMs: config.BATON_STREAM_TTL_MS });
  const app = buildApp({
    ...servicesOf(parts, config, log),
    fleet,
    tenantOf,
    inference: new CallingInference(inference, bus),
    requests,
    isReady: () => !stopping() && fleet.canAdmit && !loads.isFull,
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies: new Bodies(config.BATON_BODY_MEMORY_BYTES),
    parseThread,
    printThread,
    limits,
    log: (fields, line) => log.error(fields, line),
  });
  return { app, requests };
}

/** The services of the paths that are Baton's own. */
function servicesOf(parts: Assembly, config: GatewayConfig, log: Logger): Services {
  const { redis, forLarge, bus, deployment, fleet, loads, queueLimits, relay, stream } = parts;
  const { jobs, schedules, webhooks, files, batches, box } = parts;
  const { buckets, secret } = deployment;
  const jobService = new JobService({ jobs, redis, buckets });
  return {
    subscriptions: new SubscriptionService({ redis, relay, ...openSubscriptions(config, { redis, bus, stream }) }),
    sequences: new SequenceService({
      redis,
      forLarge,
      buckets,
      models: fleet,
      limits: queueLimits,
      shares: loads,
      maxStateBytes: config.BATON_MAX_STATE_BYTES,
      sleeping: new SleepingStates(config.BATON_HIBERNATE_DIR, secret(), log),
      idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
    }),
    jobs: jobService,
    dead: new DeadService({ redis, buckets, jobs: jobService }),
    schedules: new ScheduleService({ schedules, submissions: jobs.submissions, secret }),
    webhooks: new WebhookService({ webhooks, box, allowed: parseRanges(config.BATON_WEBHOOK_ALLOW) ?? [] }),
    deliveries: new DeliveryService(redis),
    files: new FileService(files),
    batches: new BatchService({ batches, files, secret }),
  };
}
