/** Opens the app of a gateway: its paths, and the parts that only paths use. */
import { createRequire } from "node:module";
import type { Logger } from "pino";
import { SleepingStates } from "#shared/sleeping-states.js";
import { CallingInference } from "./admission/client-calls.js";
import { buildApp, type GatewayApp } from "./app.js";
import type { Assembly } from "./assemble.js";
import type { GatewayConfig } from "./config.js";
import { Bodies } from "./http/bodies.js";
import type { TenantOf } from "./http/tenant.js";
import { Requests } from "./requests/requests.js";
import { Sequences } from "./sequences/sequences.js";
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
): { readonly app: GatewayApp; readonly requests: Requests } {
  const { redis, forLarge, bus, deployment, fleet, loads, queueLimits, relay, inference, stream } = parts;
  const { jobs, schedules, webhooks, files, batches, box, limits, parseThread, printThread } = parts;
  const { secret } = deployment;
  const requests = new Requests({ redis, bus, relay, outcomeTtlMs: config.BATON_STREAM_TTL_MS });
  const sequences = new Sequences({
    redis,
    forLarge,
    buckets: deployment.buckets,
    models: fleet,
    limits: queueLimits,
    shares: loads,
    maxStateBytes: config.BATON_MAX_STATE_BYTES,
    sleeping: new SleepingStates(config.BATON_HIBERNATE_DIR, secret(), log),
    idempotencyTtlMs: config.BATON_IDEMPOTENCY_TTL_MS,
  });
  const app = buildApp({
    fleet,
    tenantOf,
    inference: new CallingInference(inference, bus),
    requests,
    subscriptions: openSubscriptions(config, { redis, bus, requests, models: fleet, stream }),
    sequences,
    jobs,
    schedules: { schedules, secret },
    webhooks: { redis, webhooks, box, allowed: parseRanges(config.BATON_WEBHOOK_ALLOW) ?? [] },
    batches: { batches, files, secret },
    files,
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
