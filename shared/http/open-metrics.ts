/** Opens the metrics of a process. */
import { hostname } from "node:os";
import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import { UnusableError } from "../exit.js";
import { delay } from "../retry.js";
import { splitList } from "../listening/browsers.js";
import { openCertificates, type Certificates } from "./certificates.js";
import type { Lifecycle } from "../lifecycle.js";
import { cells } from "../metrics/cells.js";
import { startListener, type Listener, type ListenerOptions } from "./metrics-listener.js";
import { MetricsPage } from "../metrics/page.js";
import { isOpen, metricsToken } from "../metrics/readers.js";
import { MetricsPlace } from "../metrics/place.js";
import { showProcess, type CountedProcess } from "../metrics/process.js";
import type { ProcessConfig } from "../metrics/settings.js";

export interface MetricsTerms {
  /** The port of a process whose settings name none; absent: it shows no metrics then. */
  readonly usualPort?: number;
  /** Of the process's other listener; absent: the settings say which files there are. */
  readonly certificates?: Certificates | undefined;
  readonly role: CountedProcess["role"];
  /** Whether the process may start before another one has left its port. Absent: it may not. */
  readonly waitsForPort?: boolean;
  /** Whether a request without the token may read all the same. Absent: it may not. */
  readonly mayRead?: (incoming: IncomingMessage) => Promise<boolean>;
  readonly log: Logger;
}

/**
 * Opens the listener first of all parts, so that it closes last and answers while the process
 * starts and drains.
 * @returns undefined if the process shows no metrics
 * @throws UnusableError if the settings leave the metrics open by mistake, or the port is not free
 */
export async function openMetrics(
  config: ProcessConfig,
  { usualPort, certificates: given, role, waitsForPort = false, mayRead, log }: MetricsTerms,
  lifecycle: Lifecycle,
): Promise<MetricsPlace | undefined> {
  const { BATON_METRICS_PORT: port = usualPort, BATON_METRICS_HOST: host } = config;
  cells.limitModels(config.BATON_METRICS_MODELS);
  if (port === undefined || port === "off") return undefined;
  const isForAll = isOpen(config);
  const token = metricsToken(config);
  const certificates = given ?? openOwn(config, lifecycle, log);
  const page = await MetricsPage.open(cells);
  showProcess(cells, { role, durability: config.BATON_DURABILITY });
  const options = {
    host,
    certificates,
    hosts: [hostname().toLowerCase(), ...splitList(config.BATON_ALLOWED_HOSTS)],
    mayRead: (incoming: IncomingMessage) =>
      isForAll || token?.isIn(incoming.headers.authorization) === true || (mayRead?.(incoming) ?? false),
    page: () => page.text(),
    onFailure: (error: unknown) => log.error({ error: String(error) }, "the metrics cannot be shown"),
  };
  if (waitsForPort && port !== 0) {
    const waiting = listenWhenFree({ ...options, port }, log);
    lifecycle.onClose("metrics", () => waiting.close());
    return new MetricsPlace(host, port);
  }
  const isUsual = config.BATON_METRICS_PORT === undefined;
  const listener = await listen(options, port, isUsual, log);
  lifecycle.onClose("metrics", () => listener.close());
  log.info({ host, port: listener.port }, "metrics listening");
  return new MetricsPlace(host, listener.port);
}

function openOwn(config: ProcessConfig, lifecycle: Lifecycle, log: Logger): Certificates | undefined {
  const certificates = openCertificates(config, (fields, line) => log.warn(fields, line));
  lifecycle.onClose("certificates of metrics", () => certificates?.close());
  return certificates;
}

async function listen(
  options: Omit<ListenerOptions, "port">,
  port: number,
  isUsual: boolean,
  log: Logger,
): Promise<Listener> {
  try {
    return await startListener({ ...options, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (isUsual && code === "EADDRINUSE") {
      log.warn({ port }, "the usual port for metrics is taken, so they are at another port");
      return listen(options, 0, false, log);
    }
    throw new UnusableError(
      code === "EADDRINUSE"
        ? `BATON_METRICS_PORT is ${port}, and another program has that port on ${options.host}.`
        : `The metrics cannot listen on ${options.host}:${port} (${code ?? String(error)}): change BATON_METRICS_HOST or BATON_METRICS_PORT.`,
    );
  }
}

/** Time between two tries to get a port, in ms. */
const PORT_EVERY_MS = 250;

/** Listens as soon as the process before has left the port. */
function listenWhenFree(options: ListenerOptions, log: Logger): Pick<Listener, "close"> {
  const closing = new AbortController();
  const opening = (async () => {
    while (!closing.signal.aborted) {
      try {
        const listener = await startListener(options);
        log.info({ host: options.host, port: listener.port }, "metrics listening");
        return listener;
      } catch {
        await delay(PORT_EVERY_MS, closing.signal);
      }
    }
    return undefined;
  })();
  return {
    async close() {
      closing.abort();
      await (await opening)?.close();
    },
  };
}
