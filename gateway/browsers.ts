/**
 * What a browser may do here on behalf of a page. Anything else sends no `Origin` and is only asked
 * for a `Host` that could be no page's.
 *
 * A page of a site whose name has been made to resolve to this gateway (DNS rebinding) is of the
 * same origin as what it asks, and its requests look like curl's but for their `Host`: a name that
 * anybody may register must be on the list. Nobody can register an address, a name without a dot,
 * or one that public DNS does not serve.
 *
 * A page of another site may have the browser send what it likes, and `Origin` or `Sec-Fetch-Site`
 * tell on it: it changes nothing here and reads nothing, unless its origin is on the list.
 */
import { isIP } from "node:net";

export interface BrowserRules {
  /**
   * Names that may be asked for, beside those that are nobody's; `.name` is a name and all below
   * it.
   */
  readonly hosts: readonly string[];
  /** `*` is any but `null`, `loopback` any of this machine's, `none` none. */
  readonly origins: readonly string[];
}

export interface Asked {
  /** The host that is asked for, with its port, if the request says so. */
  readonly authority: string | undefined;
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site`. */
  readonly site: string | undefined;
  /** It may change something, or is the question whether another may. */
  readonly acts: boolean;
}

export type Verdict =
  | { readonly said: "taken" }
  /** The page of this origin may read the answer. */
  | { readonly said: "shared"; readonly origin: string }
  /** The host is none. */
  | { readonly said: "malformed" }
  | { readonly said: "refused"; readonly message: string };

const taken: Verdict = { said: "taken" };
const malformed: Verdict = { said: "malformed" };
const authorityForm = /^(\[[0-9a-f:.]+\]|[^\s:@/?#[\]\\,]+)(?::\d{0,5})?$/i;
/**
 * `.local` is multicast DNS's and Kubernetes's, `.internal` ICANN's for private use, `.svc`
 * Kubernetes's; `.home.arpa` (RFC 8375) and `.lan` are home networks'.
 */
const unregistrable = /\.(?:localhost|local|internal|svc|home\.arpa|lan)$/;
const loopbackOrigin = /^https?:\/\/(?:localhost|(?:[a-z0-9-]+\.)+localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/;

/** Entries of a setting, separated by commas. */
export function listOf(text: string): string[] {
  return text
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");
}

export function areHosts(text: string): boolean {
  return listOf(text).every((entry) => /^(?:\*|\.?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)$/.test(entry));
}

/** What is wrong with a list of origins; undefined if nothing is. */
export function originsFault(text: string): string | undefined {
  const entries = listOf(text);
  if (entries.length > 1 && entries.includes("none")) return "`none` stands alone";
  return entries.map(originFault).find((fault) => fault !== undefined);
}

/** Browsers write each origin in one way; an entry that is written otherwise would match nothing. */
function originFault(entry: string): string | undefined {
  if (entry === "*" || entry === "loopback" || entry === "none") return undefined;
  // Of other schemes (`tauri://localhost`, `chrome-extension://id`) nothing more is known.
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\/[^\s/?#@*]+$/.exec(entry) ?? [];
  const isWeb = scheme === "http" || scheme === "https";
  const origin = isWeb && URL.canParse(entry) ? new URL(entry).origin : undefined;
  if (scheme === undefined || (isWeb && origin === undefined)) {
    return `'${entry}' is no origin such as https://app.example.com, nor \`loopback\`, \`*\` or \`none\``;
  }
  if (!isWeb || origin === entry) return undefined;
  return `'${entry}' is an origin that browsers write '${origin}'; write it so`;
}

export function judge({ hosts, origins }: BrowserRules, { authority, origin, site, acts }: Asked): Verdict {
  if (authority !== undefined) {
    const host = hostOf(authority);
    if (host === undefined) return malformed;
    if (!isNobodys(host) && !hosts.some((entry) => covers(entry, host))) {
      return refused(`host '${host}' is not allowed; BATON_ALLOWED_HOSTS names the hosts that are`);
    }
  }
  if (origin === undefined) {
    if (!acts || (site !== "cross-site" && site !== "same-site")) return taken;
    return refused("a page of another origin may not do this; BATON_ALLOWED_ORIGINS names the origins that may");
  }
  // The browser compares before a proxy changes the host.
  if (site === "same-origin" || isOriginOf(origin, authority)) return taken;
  if (origins.some((entry) => includes(entry, origin))) return { said: "shared", origin };
  if (!acts) return taken;
  return refused(`origin '${origin}' is not allowed; BATON_ALLOWED_ORIGINS names the origins that are`);
}

function refused(message: string): Verdict {
  return { said: "refused", message };
}

/** In small letters, without port; undefined for what is no host. */
function hostOf(authority: string): string | undefined {
  return authorityForm.exec(authority)?.[1]?.toLowerCase().replace(/\.$/, "");
}

function isNobodys(host: string): boolean {
  return !host.includes(".") || isIP(host) !== 0 || host.startsWith("[") || unregistrable.test(host);
}

function covers(entry: string, host: string): boolean {
  return (
    entry === "*" || entry === host || (entry.startsWith(".") && (host.endsWith(entry) || host === entry.slice(1)))
  );
}

/**
 * Whether a page that was read from there is of this origin. Behind a proxy that ends TLS, the
 * scheme is not known.
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
