/** Opens the app of a gateway: the paths of its services. */
import { createRequire } from "node:module";
import type { Logger } from "pino";
import { buildApp, type GatewayApp } from "./app.js";
import type { GatewayConfig } from "./config.js";
import type { AdministrationServices } from "./endpoints.js";
import { Bodies } from "./http/bodies.js";
import type { Guard } from "./http/guard.js";
import type { Parts } from "./service/open.js";
import type { Services } from "./service/services.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };

export interface AppTerms {
  readonly config: GatewayConfig;
  readonly guard: Guard;
  /** Whether the process takes no further requests. */
  readonly stopping: () => boolean;
  readonly log: Logger;
}

export function openApp(
  { fleet, loads, limits, parseThread, printThread }: Parts,
  services: Services & AdministrationServices,
  { config, guard, stopping, log }: AppTerms,
): GatewayApp {
  return buildApp({
    ...services,
    guard,
    isReady: () => !stopping() && fleet.canAdmit && !loads.isFull,
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies: new Bodies(config.BATON_BODY_MEMORY_BYTES, guard.asks || config.BATON_TENANT_HEADER !== ""),
    parseThread,
    printThread,
    limits,
    log: (fields, line) => log.error(fields, line),
  });
}
