/** Opens the app of a gateway: the paths of its services. */
import { createRequire } from "node:module";
import type { Logger } from "pino";
import { cells } from "#shared/metrics/cells.js";
import { buildApp, type GatewayApp } from "./app.js";
import type { GatewayConfig } from "./config.js";
import { readConsoleFiles } from "./doors/console/files.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { AdministrationServices, ObservingServices } from "./endpoints.js";
import { Bodies } from "./http/bodies.js";
import type { Guard } from "./http/guard.js";
import type { Parts } from "./service/open.js";
import { ProcessLog } from "./service/observing/process-log.js";
import { TraceService } from "./service/observing/trace-settings.js";
import type { Services } from "./service/services.js";
import type { FrontDoor } from "./http/traces/front-door.js";
import type { TraceRates } from "./trace/rates.js";

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
  services: Services & AdministrationServices & ObservingServices,
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

interface ObservingTerms extends Pick<AppTerms, "config" | "log"> {
  readonly redis: RedisClient;
  readonly rates: TraceRates;
}

export function openObserving({ config, redis, rates, log }: ObservingTerms): ObservingServices {
  const hasTenantHeader = config.BATON_TENANT_HEADER !== "";
  const onChange = (change: object) => log.info(change, "the settings of traces are changed");
  return {
    traces: new TraceService({ redis, rates, hasTenantHeader, onChange }),
    processLog: new ProcessLog({ log, hasTenantHeader }),
  };
}
