/**
 * Judges which requests a browser may send on behalf of a page. Other clients send no `Origin`, so
 * only their `Host` counts.
 *
 * The `Host` guards against DNS rebinding: a site may make its own name resolve to this gateway.
 * Pages of that site then have the same origin as the gateway, and their requests look like curl's
 * except for the `Host`. So the gateway accepts a public name only if the list of allowed hosts
 * contains it. Addresses, names without a dot and names that public DNS does not serve are safe,
 * because no site can register such a name.
 *
 * `Origin` and `Sec-Fetch-Site` guard against pages of other sites, which may have the browser send
 * any request. Such a page changes and reads nothing here, unless its origin is on the list of
 * allowed origins. A link to this gateway works from every page: for it, the browser sends no
 * `Origin`.
 */
import { isIP } from "node:net";
import { errorKinds } from "../errors.js";

export interface BrowserRules {
  /**
   * Names by which clients may ask this gateway, besides names that no site can register. `.name`
   * is a name and all names below it, `*` any name.
   */
  readonly hosts: readonly string[];
  /** `*` is any origin but `null`, `loopback` any of this machine, `none` no origin. */
  readonly origins: readonly string[];
}

/** The headers of a request that say who asks, and the kind of request. */
export interface BrowserRequest {
  /** The host that the request asks for, with the port if given. */
  readonly authority: string | undefined;
  /** The header `Origin`. */
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`. */
  readonly site: string | undefined;
  /** Whether the request may change something, or asks in advance whether another request may. */
  readonly acts: boolean;
}

export type Verdict =
  /** The request continues to its route. */
  | { readonly said: "allowed" }
  /** The same, and a page of this origin may read the answer. */
  | { readonly said: "shared"; readonly origin: string }
  /** The host of the request has no valid form. */
  | { readonly said: "malformed" }
  | {
      readonly said: "refused";
      readonly message: string;
      readonly event: "host_refused" | "origin_refused";
      /** The host, the origin or the site that is refused, as the client wrote it. */
      readonly text: string;
    };

const allowed: Verdict = { said: "allowed" };
const malformed: Verdict = { said: "malformed" };
const authorityForm = /^(\[[0-9a-f:.]+\]|[^\s:@/?#[\]\\,]+)(?::\d{0,5})?$/i;
/**
 * Names that public DNS does not serve. `.local` belongs to multicast DNS and Kubernetes, `.svc` to
 * Kubernetes; ICANN keeps `.internal` for private use; `.home.arpa` (RFC 8375) and `.lan` are for
 * home networks.
 */
const privateSuffix = /\.(?:localhost|local|internal|svc|home\.arpa|lan)$/;
const loopbackOrigin = /^https?:\/\/(?:localhost|(?:[a-z0-9-]+\.)+localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/;

/** Splits a setting at its commas. Entries come in small letters. */
export function splitList(text: string): string[] {
  return text
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");
}

/** Whether each entry of the setting is a name without a port, `.name` or `*`. */
export function areHosts(text: string): boolean {
  return splitList(text).every((entry) => /^(?:\*|\.?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)$/.test(entry));
}

/**
 * Says which fault a list of origins has.
 * @returns undefined if the list has none
 */
export function originsFault(text: string): string | undefined {
  const entries = splitList(text);
  if (entries.length > 1 && entries.includes("none")) return "`none` stands alone";
  return entries.map(originFault).find((fault) => fault !== undefined);
}

/**
 * Checks one entry. Browsers write each origin in only one way, so any other spelling would match
 * nothing.
 */
function originFault(entry: string): string | undefined {
  if (entry === "*" || entry === "loopback" || entry === "none") return undefined;
  // Baton does not know how browsers write other schemes (`tauri://localhost`,
  // `chrome-extension://id`).
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\/[^\s/?#@*]+$/.exec(entry) ?? [];
  const isWeb = scheme === "http" || scheme === "https";
  const origin = isWeb && URL.canParse(entry) ? new URL(entry).origin : undefined;
  if (scheme === undefined || (isWeb && origin === undefined)) {
    return `'${entry}' is no origin such as https://app.example.com, nor \`loopback\`, \`*\` or \`none\``;
  }
  if (!isWeb || origin === entry) return undefined;
  return `'${entry}' is an origin that browsers write '${origin}'; write it so`;
}

/** Judges a request by the rules in the head of this file. */
export function judge({ hosts, origins }: BrowserRules, { authority, origin, site, acts }: BrowserRequest): Verdict {
  if (authority !== undefined) {
    const host = hostOf(authority);
    if (host === undefined) return malformed;
    if (!isUnregistrable(host) && !hosts.some((entry) => covers(entry, host))) {
      return refused(
        "host_refused",
        host,
        `host '${host}' is not allowed; BATON_ALLOWED_HOSTS names the hosts that are`,
      );
    }
  }
  if (origin === undefined) {
    if (!acts || (site !== "cross-site" && site !== "same-site")) return allowed;
    return refused("origin_refused", site, errorKinds.forbidden.texts.otherOrigin);
  }
  // The browser compared page and target itself, before a proxy may have changed the host.
  if (site === "same-origin" || isOriginOf(origin, authority)) return allowed;
  if (origins.some((entry) => includes(entry, origin))) return { said: "shared", origin };
  const message = `origin '${origin}' is not allowed; BATON_ALLOWED_ORIGINS names the origins that are`;
  return refused("origin_refused", origin, message);
}

function refused(event: "host_refused" | "origin_refused", text: string, message: string): Verdict {
  return { said: "refused", message, event, text };
}

/**
 * Returns the host in small letters, without its port.
 * @returns undefined if the form is invalid
 */
function hostOf(authority: string): string | undefined {
  return authorityForm.exec(authority)?.[1]?.toLowerCase().replace(/\.$/, "");
}

/** Whether no site can register the host, so that no page of another site has this host. */
function isUnregistrable(host: string): boolean {
  return !host.includes(".") || isIP(host) !== 0 || host.startsWith("[") || privateSuffix.test(host);
}

function covers(entry: string, host: string): boolean {
  return (
    entry === "*" || entry === host || (entry.startsWith(".") && (host.endsWith(entry) || host === entry.slice(1)))
  );
}

/**
 * Whether a page from `authority` has this origin. Compares only host and port, because behind a
 * proxy that ends TLS the gateway does not know the scheme that the browser used.
 */
function isOriginOf(origin: string, authority: string | undefined): boolean {
  const [, scheme, place] = /^(https?):\/\/(.+)$/.exec(origin) ?? [];
  if (authority === undefined || place === undefined) return false;
  return place === authority.toLowerCase().replace(scheme === "https" ? /:443$/ : /:80$/, "");
}

function includes(entry: string, origin: string): boolean {
  if (entry === "*") return origin !== "null";
  if (entry === "none") return false;
  return entry === "loopback" ? loopbackOrigin.test(origin) : entry === origin;
}
