/** Opens the app of a gateway: the paths of its services. */
import { createRequire } from "node:module";
import type { Logger } from "pino";
import { cells } from "#shared/metrics/cells.js";
import { buildApp, type GatewayApp } from "./app.js";
import type { GatewayConfig } from "./config.js";
import { readConsoleFiles } from "./doors/console/files.js";
import type { AdministrationServices } from "./endpoints.js";
import { Bodies } from "./http/bodies.js";
import type { Guard } from "./http/guard.js";
import type { Parts } from "./service/open.js";
import type { Services } from "./service/services.js";
import type { FrontDoor } from "./http/traces/front-door.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };

export interface AppTerms {
  readonly config: GatewayConfig;
  readonly guard: Guard;
  /** Whether the process takes no further requests. */
  readonly stopping: () => boolean;
  /** Undefined if the gateway makes no traces. */
  readonly frontDoor: FrontDoor | undefined;
  readonly log: Logger;
}

export function openApp(
  { fleet, loads, limits, parseThread, printThread }: Parts,
  services: Services & AdministrationServices,
  { config, guard, stopping, frontDoor, log }: AppTerms,
): GatewayApp {
  const bodies = new Bodies(config.BATON_BODY_MEMORY_BYTES, guard.asks || config.BATON_TENANT_HEADER !== "");
  cells.show("baton_http_body_memory_bytes", {}, () => bodies.heldBytes);
  return buildApp({
    ...services,
    console: config.BATON_CONSOLE ? readConsoleFiles() : undefined,
    guard,
    frontDoor,
    isReady: () => !stopping() && fleet.canAdmit && !loads.isFull,
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies,
    parseThread,
    printThread,
    limits,
    log: (fields, line) => log.error(fields, line),
  });
}
