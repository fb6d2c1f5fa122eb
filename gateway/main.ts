/**
 * The gateway process. It opens its parts in order, logs that the server listens, and closes the
 * parts in reverse.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { hostname } from "node:os";
import type { Logger } from "pino";
import { exitCodeOf } from "#shared/exit.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { openMetrics } from "#shared/http/open-metrics.js";
import { cells } from "#shared/metrics/cells.js";
import { droppedSpans } from "#shared/metrics/process.js";
import { USUAL_PORT } from "#shared/metrics/settings.js";
import { settingsOrExit } from "#shared/settings.js";
import type { TraceFields } from "#shared/queue/trace-settings.js";
import { openTracer } from "#shared/trace/open.js";
import { Audit } from "./auth/audit.js";
import { hasScope } from "./auth/owner/scopes.js";
import { authTerms } from "./auth/settings.js";
import { gatewayConfig, type GatewayConfig } from "./config.js";
import { openCertificates } from "#shared/http/certificates.js";
import { Observer } from "./fleet/observer.js";
import { askingOf, type Guard } from "./http/guard.js";
import { HttpCounts } from "./http/counts.js";
import { RequestAudit } from "./http/request-audit.js";
import { splitList } from "#shared/listening/browsers.js";
import { Peers } from "./http/peers.js";
import { authOf, openAdministration, openAuth, type OpenedAuth } from "./open-auth.js";
import { doorParts, loadGrpc, openApp, openGrpc, openObserving } from "./open-app.js";
import { WebSocketEndpoint } from "./api/streams/websocket.js";
import { startServer } from "./server.js";
import { openParts, type Parts, type PartsOptions } from "./service/open.js";
import { servicesOf } from "./service/services.js";
import { usedBudgets } from "./service/used/budgets.js";
import { FrontDoor } from "./http/traces/front-door.js";
import { TraceRates } from "./trace/rates.js";
import { parseRanges } from "./webhooks/addresses.js";

/**
 * Connections that the server accepts per turn of the event loop. When a gateway dies, all of its
 * clients connect to another gateway at once.
 */
const ACCEPTING = 8;

async function serve(config: GatewayConfig, log: Logger): Promise<Lifecycle> {
  const lifecycle = new Lifecycle(log);
  const name = `gw-${randomBytes(8).toString("hex")}`;
  const terms = authTerms(config);
  // Loaded only if it is wanted, and first, because its file may be wrong.
  const accessLog = config.BATON_ACCESS_LOG === "off" ? undefined : await import("./access-log/open.js");
  const lines = accessLog?.openLines(config.BATON_ACCESS_LOG, log);
  if (lines !== undefined) lifecycle.onClose("access log", () => lines.close());
  const grpcCode = loadGrpc(config);
  let stopping = false;
  const audit = new Audit(name, (lines) => process.stdout.write(lines));
  lifecycle.onClose("audit", () => audit.flush());
  const { rates, tracerOf, frontDoor } = await openTraces(config, name, lifecycle, log);
  const auth = authOf(terms, config);
  const certificates = openCertificates(config, (fields, line) => log.warn(fields, line));
  lifecycle.onClose("certificates", () => certificates?.close());
  let keys: Guard | undefined;
  const mayRead = async (incoming: IncomingMessage) => keys !== undefined && isOperator(keys, incoming);
  const metrics = await openMetrics(
    config,
    { role: "gateway", usualPort: USUAL_PORT, certificates, mayRead, log },
    lifecycle,
  );
  const leave = () => lifecycle.close();
  const onTracing = (fields: TraceFields) => rates.take(fields);
  const parts = await openParts(
    { kind: "gateway", name, config, auth, leave, audit, metrics, onTracing, tracerOf, log },
    lifecycle,
  );
  const hasTenants = terms.kind !== "off" || config.BATON_TENANT_HEADER !== "";
  const { BATON_CACHE_BYTES: mostBytes, BATON_CACHE_TTL_MS: ttlMs } = config;
  const cache = mostBytes === 0 ? undefined : { mostBytes, ttlMs };
  const shared = servicesOf(parts, { config, cache, hasTenants, audit, log });
  const peers = new Peers(parseRanges(config.BATON_TRUSTED_PROXIES));
  const requestAudit = new RequestAudit(audit, peers);
  const { redis, bus, deployment } = parts;
  if (deployment.isFirstToAsk) audit.note("auth_required", { actor: name });
  const surroundings = { redis, bus, buckets: deployment.buckets, config, peers, audit, requestAudit, log };
  const { guard: judging, limits, ...opened } = await openAuth(terms, surroundings, lifecycle);
  cells.limitTenants(config.BATON_METRICS_TENANTS);
  if (config.BATON_HISTORY) beginToObserve(parts, { gateway: name, limits }, lifecycle, log);
  const workerOf = (boot: string) => parts.fleet.workerOf(boot);
  const access =
    lines && accessLog?.openAccessLog({ gateway: name, peers, workerOf, write: (line) => lines.write(line) });
  const guard = accessLog?.notingGuard(judging) ?? judging;
  if (guard.asks) keys = guard;
  const services = {
    ...shared,
    ...openAdministration(terms, { ...surroundings, ...opened }, shared),
    ...openObserving({ config, parts, rates, log }),
  };
  const doors = doorParts(parts, services, { config, guard, stopping: () => stopping });
  const counts = new HttpCounts();
  const doorTerms = { config, guard, stopping: () => stopping, frontDoor, counts, access, certificates, log };
  const app = openApp(doors, doorTerms);
  const grpc = await openGrpc(grpcCode, doors, doorTerms);
  const server = await startServer(app, {
    certificates,
    port: config.BATON_HTTP_PORT,
    host: config.BATON_HOST,
    log: (fields, line) => log.debug(fields, line),
    webSockets: new WebSocketEndpoint({
      requests: services.requests,
      guard,
      frontDoor,
      log: (fields, line) => log.error(fields, line),
    }),
    accepting: ACCEPTING,
    browsers: {
      hosts: [hostname().toLowerCase(), ...splitList(config.BATON_ALLOWED_HOSTS)],
      origins: splitList(config.BATON_ALLOWED_ORIGINS),
    },
    audit: requestAudit,
    counts,
    access,
    limits: { unreadBytes: config.BATON_MAX_UNREAD_BYTES },
    shareOf: guard.shareOf,
    judgesFirst: guard.asks,
    socketParser: config.BATON_SOCKET_PARSER,
    uploadMs: config.BATON_UPLOAD_MS,
  });
  lifecycle.onClose("http and gRPC", async () => {
    stopping = true;
    const { BATON_DRAIN_MS: graceMs, BATON_LINGER_MS: lingerMs } = config;
    await Promise.all([server.close(graceMs, lingerMs), grpc?.close(graceMs, lingerMs)]);
  });
  log.info({ gateway: name, port: server.port }, "gateway listening");
  return lifecycle;
}

/** Observes the fleet in turn with other gateways, until the process ends. */
function beginToObserve(
  { redis, deployment, queueLimits, fleet }: Parts,
  { gateway, limits }: { readonly gateway: string } & Pick<OpenedAuth, "limits">,
  lifecycle: Lifecycle,
  log: Logger,
): void {
  const { buckets } = deployment;
  const leaving = new AbortController();
  const budgetsOf =
    limits && (async (tenant: string) => usedBudgets({ redis, buckets }, await limits.limitsOf(tenant)));
  const turns = new Observer({ redis, gateway, buckets, limits: queueLimits, fleet, cells, budgetsOf, log });
  const observing = turns.watch(leaving.signal);
  lifecycle.onClose("observer", async () => {
    leaving.abort();
    await observing;
  });
}

/** Whether a request to the metrics has a key of an operator. */
async function isOperator(keys: Guard, incoming: IncomingMessage): Promise<boolean> {
  try {
    return hasScope((await keys.ownerOf(askingOf(incoming))).scopes, "operator");
  } catch {
    return false; // no key, no good key, or Redis cannot say so now
  }
}

interface OpenedTraces {
  readonly rates: TraceRates;
  readonly tracerOf?: PartsOptions["tracerOf"];
  readonly frontDoor?: FrontDoor;
}

/** @returns no tracer and no front door if the settings ask for no traces */
async function openTraces(
  config: GatewayConfig,
  name: string,
  lifecycle: Lifecycle,
  log: Logger,
): Promise<OpenedTraces> {
  const tracer = await openTracer(config, {
    role: "gateway",
    process: name,
    log: (fields, line) => log.warn(fields, line),
    onDropped: droppedSpans(cells),
  });
  const rates = new TraceRates(tracer !== undefined, config.BATON_TRACE_SAMPLE);
  if (tracer === undefined) return { rates };
  lifecycle.onClose("traces", () => tracer.close());
  return { rates, tracerOf: (model: string) => rates.tracerOf(model, tracer), frontDoor: new FrontDoor(tracer, rates) };
}

async function main(): Promise<void> {
  const { config, log } = settingsOrExit("gateway", gatewayConfig);
  const serving = serve(config, log);
  stopOnSignal(log, async () => (await serving).close());
  try {
    await serving;
  } catch (error) {
    log.fatal({ error: error instanceof Error ? error.message : String(error) }, "gateway cannot start");
    process.exit(exitCodeOf(error));
  }
}

void main();
