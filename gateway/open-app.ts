/** Opens the doors of a gateway, over its services: the app with its paths, and gRPC. */
import type { Logger } from "pino";
import type { Certificates } from "#shared/http/certificates.js";
import { cells } from "#shared/metrics/cells.js";
import { buildApp, type GatewayApp } from "./app.js";
import type { GatewayConfig } from "./config.js";
import { readConsoleFiles } from "./doors/console/files.js";
import type { RunningGrpc } from "./doors/grpc/server.js";
import { USUAL_GRPC_PORT } from "./doors/grpc/settings.js";
import type { AccessLog } from "./facts/answer-facts.js";
import { TensorPrinter } from "./formats/kserve/tensor-printer.js";
import { version } from "#shared/boot.js";
import type { AdministrationServices, ObservingServices } from "./endpoints.js";
import { Bodies } from "./http/bodies.js";
import type { HttpCounts } from "./http/counts.js";
import type { Guard } from "./http/guard.js";
import type { Parts } from "./service/open.js";
import { LogService } from "./service/observing/log-settings.js";
import { RepositoryService } from "./service/observing/repository.js";
import { TraceService } from "./service/observing/trace-settings.js";
import type { Services } from "./service/services.js";
import type { FrontDoor } from "./http/traces/front-door.js";
import type { TraceRates } from "./trace/rates.js";

export interface AppTerms {
  readonly config: GatewayConfig;
  readonly guard: Guard;
  /** Whether the process takes no further requests. */
  readonly stopping: () => boolean;
  /** Undefined if the gateway makes no traces. */
  readonly frontDoor: FrontDoor | undefined;
  readonly log: Logger;
}

/** The parts that all doors have in common. */
export function doorParts(
  { fleet, loads, limits, parseThread, printThread }: Parts,
  services: Services & AdministrationServices & ObservingServices,
  { config, guard, stopping }: Pick<AppTerms, "config" | "guard" | "stopping">,
) {
  const bodies = new Bodies(config.BATON_BODY_MEMORY_BYTES, guard.asks || config.BATON_TENANT_HEADER !== "");
  cells.show("baton_http_body_memory_bytes", {}, () => bodies.heldBytes);
  return {
    ...services,
    isReady: () => !stopping() && fleet.canAdmit && !loads.isFull,
    serverName: config.BATON_SERVER_NAME,
    version,
    bodies,
    parseThread,
    printer: new TensorPrinter(printThread),
    limits,
  };
}

export type DoorParts = ReturnType<typeof doorParts>;

export function openApp(parts: DoorParts, { config, guard, frontDoor, log }: AppTerms): GatewayApp {
  return buildApp({
    ...parts,
    console: config.BATON_CONSOLE ? readConsoleFiles() : undefined,
    guard,
    frontDoor,
    log: (fields, line) => log.error(fields, line),
  });
}

/**
 * Begins to load the code of gRPC, which takes as long as connecting to the brokers does.
 * @returns undefined if the settings switch gRPC off
 */
export function loadGrpc(config: GatewayConfig) {
  return config.BATON_GRPC_PORT === "off" ? undefined : import("./doors/grpc/server.js");
}

/**
 * Opens gRPC.
 * @returns undefined if the settings switch it off
 * @throws UnusableError if its port is not free
 */
export async function openGrpc(
  code: ReturnType<typeof loadGrpc>,
  parts: DoorParts,
  { config, guard, frontDoor, counts, access, certificates, log }: GrpcDoorTerms,
): Promise<RunningGrpc | undefined> {
  const { BATON_GRPC_PORT: port = USUAL_GRPC_PORT } = config;
  if (code === undefined || port === "off") return undefined;
  const { startGrpc } = await code;
  const running = await startGrpc({
    parts: { ...parts, sequenceBacklog: config.BATON_SEQUENCE_BACKLOG },
    bodies: parts.bodies,
    guard,
    frontDoor,
    counts,
    access,
    certificates,
    host: config.BATON_HOST,
    port,
    isUsualPort: config.BATON_GRPC_PORT === undefined,
    maxAgeMs: config.BATON_GRPC_MAX_AGE_MS,
    keepAliveMs: config.BATON_GRPC_KEEPALIVE_MS,
    keepAliveTimeoutMs: config.BATON_GRPC_KEEPALIVE_TIMEOUT_MS,
    reflects: config.BATON_GRPC_REFLECTION,
    log: (fields, line) => log.warn(fields, line),
  });
  cells.show("baton_grpc_connections", {}, running.connections);
  log.info({ port: running.port }, "gRPC listening");
  return running;
}

interface GrpcDoorTerms extends Omit<AppTerms, "stopping"> {
  readonly counts: HttpCounts;
  readonly access: AccessLog | undefined;
  readonly certificates: Certificates | undefined;
}

interface ObservingTerms extends Pick<AppTerms, "config" | "log"> {
  readonly parts: Pick<Parts, "redis" | "fleet" | "logLevel">;
  readonly rates: TraceRates;
}

export function openObserving({ config, parts, rates, log }: ObservingTerms): ObservingServices {
  const { redis, fleet, logLevel: level } = parts;
  const hasTenantHeader = config.BATON_TENANT_HEADER !== "";
  const onChange = (change: object) => log.info(change, "the settings of traces are changed");
  return {
    traces: new TraceService({ redis, rates, hasTenantHeader, onChange }),
    logging: new LogService({ redis, level, hasTenantHeader }),
    repository: new RepositoryService({ redis, fleet, hasTenantHeader }),
  };
}
