/** Opens the app of a gateway: the paths of its services. */
import { createRequire } from "node:module";
import type { Logger } from "pino";
import { buildApp, type GatewayApp } from "./app.js";
import type { GatewayConfig } from "./config.js";
import { Bodies } from "./http/bodies.js";
import type { TenantOf } from "./http/tenant.js";
import type { Parts } from "./service/open.js";
import type { Services } from "./service/services.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };

export interface AppTerms {
  readonly config: GatewayConfig;
  readonly tenantOf: TenantOf;
  /** Whether the process takes no further requests. */
  readonly stopping: () => boolean;
  readonly log: Logger;
}

export function openApp(
  { fleet, loads, limits, parseThread, printThread }: Parts,
  services: Services,
  { config, tenantOf, stopping, log }: AppTerms,
): GatewayApp {
  return buildApp({
    ...services,
    tenantOf,
    isReady: () => !stopping() && fleet.canAdmit && !loads.isFull,
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies: new Bodies(config.BATON_BODY_MEMORY_BYTES),
    parseThread,
    printThread,
    limits,
    log: (fields, line) => log.error(fields, line),
  });
}
