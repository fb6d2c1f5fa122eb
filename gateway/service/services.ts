/** Makes the services of a process from its parts, for every door of the process. */
import type { Logger } from "pino";
import { SleepingStates } from "#shared/sleeping-states.js";
import { CallingInference } from "../admission/client-calls.js";
import type { Inference } from "../admission/inference.js";
import type { Audit } from "../auth/audit.js";
import { FleetEvents } from "../fleet/events.js";
import { StatisticsService } from "../fleet/statistics.js";
import type { Fleet } from "../fleet/watch.js";
import { openSubscriptions } from "../subscriptions/open.js";
import { parseRanges } from "../webhooks/addresses.js";
import { BatchService } from "./batches.js";
import { DeadService } from "./dead.js";
import { DeliveryService } from "./deliveries.js";
import { FileService } from "./files.js";
import { JobService } from "./jobs.js";
import type { Parts } from "./open.js";
import { RequestService } from "./requests.js";
import { ScheduleService } from "./schedules.js";
import { SequenceService } from "./sequences.js";
import type { ServiceConfig } from "./settings.js";
import { SubscriptionService } from "./subscriptions.js";
import { WebhookService } from "./webhooks.js";

/** Every operation of Baton, by its noun. */
export interface Services {
  /** Runs models for clients that wait, or that come back. A request holds its tenant. */
  readonly inference: Inference;
  /** Finds models, and describes the fleet. */
  readonly fleet: Fleet;
  /** Tells what happens in the fleet. */
  readonly fleetEvents: FleetEvents;
  /** Sums up what models have done. */
  readonly statistics: StatisticsService;
  readonly requests: RequestService;
  readonly subscriptions: SubscriptionService;
  readonly sequences: SequenceService;
  readonly jobs: JobService;
  readonly dead: DeadService;
  readonly schedules: ScheduleService;
  readonly webhooks: WebhookService;
  readonly deliveries: DeliveryService;
  readonly files: FileService;
  readonly batches: BatchService;
}

export interface ServiceTerms {
  readonly config: ServiceConfig;
  /** Whether requests may have several tenants. */
  readonly hasTenants: boolean;
  readonly audit?: Audit;
  readonly log: Logger;
}

export function servicesOf(parts: Parts, { config, hasTenants, audit, log }: ServiceTerms): Services {
  const { redis, forLarge, bus, deployment, fleet, loads, queueLimits, relay, stream } = parts;
  const { jobs, schedules, webhooks, files, batches, box } = parts;
  const { buckets, secret } = deployment;
  const jobService = new JobService({ jobs, redis, buckets });
  return {
    inference: new CallingInference(parts.inference, bus),
    fleet,
    fleetEvents: new FleetEvents({ name: parts.name, redis, fleet }),
    statistics: new StatisticsService({ redis, name: parts.name, reports: parts.reports, fleet }),
    requests: new RequestService({
      redis,
      bus,
      relay,
      buckets,
      models: fleet,
      outcomeTtlMs: config.BATON_STREAM_TTL_MS,
    }),
    subscriptions: new SubscriptionService({
      redis,
      relay,
      ...openSubscriptions(config, { redis, bus, stream }),
      audit,
    }),
    sequences: new SequenceService({
      redis,
      forLarge,
      buckets,
      models: fleet,
      limits: queueLimits,
      shares: loads,
      hasOneTenant: !hasTenants,
      maxStateBytes: config.BATON_MAX_STATE_BYTES,
      sleeping: new SleepingStates(config.BATON_HIBERNATE_DIR, secret(), log),
      idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
    }),
    jobs: jobService,
    dead: new DeadService({ redis, buckets, jobs: jobService }),
    schedules: new ScheduleService({ schedules, submissions: jobs.submissions, secret }),
    webhooks: new WebhookService({ redis, webhooks, box, allowed: parseRanges(config.BATON_WEBHOOK_ALLOW) ?? [] }),
    deliveries: new DeliveryService(redis),
    files: new FileService(files, redis),
    batches: new BatchService({ batches, files, secret }),
  };
}
