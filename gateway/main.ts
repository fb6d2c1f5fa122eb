/**
 * The gateway process. It opens its parts in order, logs that the server listens, and closes the
 * parts in reverse.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Logger } from "pino";
import { exitCodeOf } from "#shared/exit.js";
import { Lifecycle, stopOnSignal } from "#shared/lifecycle.js";
import { settingsOrExit } from "#shared/settings.js";
import { Audit } from "./auth/audit.js";
import { authTerms } from "./auth/settings.js";
import { gatewayConfig, type GatewayConfig } from "./config.js";
import { RequestAudit } from "./http/request-audit.js";
import { splitList } from "./http/browsers.js";
import { Peers } from "./http/peers.js";
import { authOf, openAdministration, openAuth } from "./open-auth.js";
import { openApp } from "./open-app.js";
import { WebSocketEndpoint } from "./api/streams/websocket.js";
import { startServer } from "./server.js";
import { openParts } from "./service/open.js";
import { servicesOf } from "./service/services.js";
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
  let stopping = false;
  const audit = new Audit(name, (lines) => process.stdout.write(lines));
  lifecycle.onClose("audit", () => audit.flush());
  const auth = authOf(terms, config);
  const leave = () => lifecycle.close();
  const parts = await openParts({ kind: "gateway", name, config, auth, leave, audit, log }, lifecycle);
  const shared = servicesOf(parts, config, log, audit);
  const peers = new Peers(parseRanges(config.BATON_TRUSTED_PROXIES));
  const requestAudit = new RequestAudit(audit, peers);
  if (parts.deployment.isFirstToAsk) audit.note("auth_required", { actor: name });
  const surroundings = { redis: parts.redis, config, peers, audit, requestAudit, log };
  const { guard, ...opened } = await openAuth(terms, surroundings, lifecycle);
  const services = { ...shared, ...openAdministration(terms, { ...surroundings, ...opened }, shared) };
  const app = openApp(parts, services, { config, guard, stopping: () => stopping, log });
  const server = await startServer(app, {
    port: config.BATON_HTTP_PORT,
    host: config.BATON_HOST,
    log: (fields, line) => log.debug(fields, line),
    webSockets: new WebSocketEndpoint({
      requests: services.requests,
      guard,
      log: (fields, line) => log.error(fields, line),
    }),
    accepting: ACCEPTING,
    browsers: {
      hosts: [hostname().toLowerCase(), ...splitList(config.BATON_ALLOWED_HOSTS)],
      origins: splitList(config.BATON_ALLOWED_ORIGINS),
    },
    audit: requestAudit,
    limits: { unreadBytes: config.BATON_MAX_UNREAD_BYTES },
    judgesFirst: guard.asks,
    socketParser: config.BATON_SOCKET_PARSER,
    uploadMs: config.BATON_UPLOAD_MS,
  });
  lifecycle.onClose("http", () => {
    stopping = true;
    return server.close(config.BATON_DRAIN_MS, config.BATON_LINGER_MS);
  });
  log.info({ gateway: name, port: server.port }, "gateway listening");
  return lifecycle;
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
