/**
 * Makes one attempt at a webhook. The sender checks every connection: each address of a resolved
 * name, a literal address, and the socket's peer before it sends anything. The sender follows no
 * redirects, reads an answer up to a limit and never decompresses the answer. One time limit covers
 * all steps.
 */
import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent, buildConnector, request } from "undici";
import type { Answered } from "./verdict.js";
import { isLocalName, mayConnect, urlFault, type AddressRanges, type Scheme } from "../../webhooks/addresses.js";

const CONNECT_MS = 3_000;
const MOST_ANSWER_BYTES = 64 * 1024;
const MOST_HEAD_BYTES = 16 * 1024;
/** Closes a connection after this time without use, in ms. */
const KEPT_OPEN_MS = 4_000;

export interface SenderSettings {
  readonly allowed: AddressRanges;
  readonly timeoutMs: number;
  /** Resolves names; by default, the system's `lookup`. */
  readonly resolve?: typeof lookup;
}

class NotAllowedError extends Error {
  override readonly name = "NotAllowedError";
  readonly code = "url_not_allowed";
}

export class Sender {
  readonly #settings: SenderSettings;
  readonly #agent: Agent;

  constructor(settings: SenderSettings) {
    this.#settings = settings;
    this.#agent = new Agent({
      connect: checkedConnector(settings.allowed, settings.resolve ?? lookup),
      keepAliveTimeout: KEPT_OPEN_MS,
      // A receiver may ask for a shorter time, but not for a longer one.
      keepAliveMaxTimeout: KEPT_OPEN_MS,
      maxHeaderSize: MOST_HEAD_BYTES,
      pipelining: 1,
    });
  }

  async send(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Answered> {
    const { allowed, timeoutMs } = this.#settings;
    const startedAt = performance.now();
    const passed = () => Math.round(performance.now() - startedAt);
    // The connector never resolves a literal address, so this line checks such a URL.
    if (urlFault(url, allowed) !== undefined) return { status: null, error: "url_not_allowed", ms: 0 };
    const over = AbortSignal.timeout(timeoutMs);
    try {
      const answer = await request(url, { method: "POST", headers, body, dispatcher: this.#agent, signal: over });
      const { statusCode: status, headers: given } = answer;
      // The status decides. Reads the rest of the answer only so that the receiver's connection
      // does not break.
      await answer.body.dump({ limit: MOST_ANSWER_BYTES, signal: over }).catch(() => undefined);
      const retryAfter = given["retry-after"];
      return { status, error: faultOf(status), ms: passed(), ...(typeof retryAfter === "string" && { retryAfter }) };
    } catch (error) {
      return { status: null, error: reasonOf(error), ms: passed() };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function faultOf(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400 ? "redirect_not_followed" : `http_${status}`;
}

/** Words for network errors. They contain no addresses or names of our network. */
const reasons: Readonly<Record<string, string>> = {
  url_not_allowed: "url_not_allowed",
  TimeoutError: "timeout",
  ABORT_ERR: "timeout",
  UND_ERR_ABORTED: "timeout",
  UND_ERR_CONNECT_TIMEOUT: "connect_timeout",
  ETIMEDOUT: "connect_timeout",
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_lost",
  EPIPE: "connection_lost",
  UND_ERR_SOCKET: "connection_lost",
  ENOTFOUND: "name_not_found",
  EAI_AGAIN: "name_not_found",
  ENODATA: "name_not_found",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  UND_ERR_HEADERS_OVERFLOW: "bad_answer",
  HTTPParserError: "bad_answer",
};

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "failed";
  const { code } = error as NodeJS.ErrnoException;
  const known = reasons[String(code)] ?? reasons[error.name];
  if (known !== undefined) return known;
  // For example, an invalid certificate.
  return /CERT|SSL|TLS|ALTNAME|SELF_SIGNED|VERIFY/.test(String(code)) ? "tls" : "failed";
}

function checkedConnector(allowed: AddressRanges, resolve: typeof lookup): buildConnector.connector {
  const made = (scheme: Scheme) =>
    buildConnector({
      timeout: CONNECT_MS,
      lookup: checkedLookup(scheme, allowed, resolve),
      // Without this, attempts at several addresses would share the time limit of one.
      autoSelectFamily: true,
      allowH2: false,
    });
  const connectors = { http: made("http"), https: made("https") };
  return (options, done) => {
    const scheme = options.protocol === "https:" ? "https" : "http";
    connectors[scheme](options, (error, socket) => {
      if (error !== null) return done(error, null);
      if (mayConnect(socket.remoteAddress ?? "", scheme, allowed)) return done(null, socket);
      socket.destroy();
      done(new NotAllowedError(), null);
    });
  };
}

/** Returns only the addresses of a name to which the sender may connect. */
function checkedLookup(scheme: Scheme, allowed: AddressRanges, resolve: typeof lookup): LookupFunction {
  return (hostname, options, done) => {
    const name = isLocalName(hostname) ? "localhost" : hostname;
    resolve(name, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, "");
      const usable = found.filter(({ address }) => mayConnect(address, scheme, allowed));
      const [first] = usable;
      if (first === undefined) return done(new NotAllowedError(), "");
      if (options.all === true) done(null, usable);
      else done(null, first.address, first.family);
    });
  };
}
