/**
 * The certificate of the gateway's listener. The gateway looks every few seconds at the files, and
 * takes them once they fit together, so that an operator or a program can renew them while the
 * gateway runs.
 */
import { createServer, type Server, type ServerOptions } from "node:https";
import { UnusableError } from "../exit.js";
import { readTls, stampOf, tlsFilesOf, type TlsFiles, type TlsSettings } from "../tls.js";

/** The gateway's settings. `ca` signs the certificates of clients. */
const settings: TlsSettings = {
  ca: "BATON_TLS_CLIENT_CA_FILE",
  cert: "BATON_TLS_CERT_FILE",
  key: "BATON_TLS_KEY_FILE",
};

/** Time between two looks at the files, in ms. */
const LOOK_MS = 2_000;

/**
 * Opens the certificates of a gateway.
 * @returns undefined if the settings name none
 * @throws UnusableError that names the setting at fault
 */
export function openCertificates(
  config: Readonly<Record<string, unknown>>,
  log: (fields: object, line: string) => void,
): Certificates | undefined {
  const files = tlsFilesOf(settings, config);
  if (files.ca !== undefined && files.cert === undefined)
    throw new UnusableError(`${settings.ca} needs ${settings.cert}, which is not set.`);
  return files.cert === undefined && files.key === undefined ? undefined : new Certificates(files, log);
}

export class Certificates {
  readonly #files: TlsFiles;
  readonly #log: (fields: object, line: string) => void;
  readonly #servers = new Set<Server>();
  readonly #looking: NodeJS.Timeout;
  #read: ReturnType<typeof readTls>;
  /** The state of the files that are in use. */
  #seen: string;
  /** Of the last look, so that the log has it once; "" if there was none. */
  #fault = "";

  /**
   * @param log gets a line for each change of the files
   * @throws UnusableError that names the setting at fault
   */
  constructor(files: TlsFiles, log: (fields: object, line: string) => void) {
    this.#files = files;
    this.#log = log;
    this.#seen = stampOf(files);
    this.#read = readTls(files, settings);
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Makes a server, which has the certificate of the moment for each new connection. */
  server(options: Omit<ServerOptions, "SNICallback">): Server {
    const asks = this.#files.ca !== undefined;
    const server = createServer({
      ...options,
      ...this.#read,
      minVersion: "TLSv1.2",
      requestCert: asks,
      rejectUnauthorized: asks,
    });
    this.#servers.add(server);
    server.once("close", () => this.#servers.delete(server));
    return server;
  }

  close(): void {
    clearInterval(this.#looking);
  }

  #look(): void {
    const stamp = stampOf(this.#files);
    if (stamp === this.#seen) return;
    try {
      this.#read = readTls(this.#files, settings);
      for (const server of this.#servers) server.setSecureContext({ ...this.#read, minVersion: "TLSv1.2" });
      this.#seen = stamp;
      this.#fault = "";
      this.#log({}, "the certificate was renewed");
    } catch (error) {
      // The next look tries again: perhaps a file was not complete, or could not be opened.
      const fault = error instanceof Error ? error.message : String(error);
      if (fault === this.#fault) return;
      this.#fault = fault;
      this.#log({ error: fault }, "the former certificate stays: the new files cannot be used");
    }
  }
}
