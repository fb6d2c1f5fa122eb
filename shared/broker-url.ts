/**
 * Reads the addresses of brokers, and reports faults. The client libraries accept almost any text,
 * mostly as the path of a socket, and would try to connect for ever. A message never quotes a whole
 * address, because the address may contain a password.
 */

import { namesFiles, type TlsFiles } from "./tls.js";

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** A user name and a password. */
interface Credentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** The parts of a Redis URL. */
export type RedisPlace =
  /** One server, or a proxy that acts as a server. `url` has the client library's form. */
  | { readonly kind: "server"; readonly url: string; readonly tls: TlsFiles | undefined }
  /** The primary that the Sentinels name. The credentials are for Redis itself. */
  | ({
      readonly kind: "sentinel";
      readonly sentinels: readonly HostAndPort[];
      readonly sentinelCredentials: Credentials;
      /** The Sentinels' name for this primary. */
      readonly name: string;
      readonly db: number;
      readonly tls: TlsFiles | undefined;
    } & Credentials)
  /** The masters of a Redis Cluster. `nodes` are the first nodes to ask. */
  | ({
      readonly kind: "cluster";
      readonly nodes: readonly HostAndPort[];
      readonly tls: TlsFiles | undefined;
    } & Credentials);

/** The client library also accepts such addresses without a scheme. */
const hostAndPort = /^[\w.-]+:\d+$/;
const redisSchemes: ReadonlySet<string> = new Set([
  "redis",
  "rediss",
  "redis+sentinel",
  "rediss+sentinel",
  "redis+cluster",
  "rediss+cluster",
]);
const PORTS = { sentinel: 26_379, cluster: 6_379 };
/**
 * The Sentinels' own credentials, after the path, because the host part holds the credentials for
 * Redis.
 */
const sentinelParameters: ReadonlySet<string> = new Set(["sentinel_username", "sentinel_password"]);
const tlsNames = ["ca", "cert", "key"] as const;
/** Baton's own parameters, in which an address carries its files for TLS. */
const tlsParameters = { ca: "baton_tls_ca", cert: "baton_tls_cert", key: "baton_tls_key" } as const;

/** @returns the fault, as the end of a sentence; undefined for a valid address */
export function redisUrlFault(url: string): string | undefined {
  const read = readRedisUrl(url);
  return typeof read === "string" ? read : undefined;
}

/** @throws TypeError for an address in which `redisUrlFault` finds a fault */
export function redisPlace(url: string): RedisPlace {
  const read = readRedisUrl(url);
  if (typeof read === "string") throw new TypeError(`the URL of Redis ${read}`);
  return read;
}

/**
 * The address of Redis with a user of that Redis.
 * @param url an address without credentials, as `holdsRedisUser` says
 */
export function withRedisUser(url: string, username: string | undefined, password: string): string {
  const [name, secret] = [encodeURIComponent(username ?? ""), encodeURIComponent(password)];
  // The client library takes the credentials of a socket as parameters.
  if (url.startsWith("/")) return `${url}${url.includes("?") ? "&" : "?"}username=${name}&password=${secret}`;
  return (hostAndPort.test(url) ? `redis://${url}` : url).replace("://", () => `://${name}:${secret}@`);
}

/**
 * The address of Redis with its files for TLS.
 * @param url an address for TLS, as `isForTls` says
 */
export function withTlsFiles(url: string, files: TlsFiles): string {
  const parameters = tlsNames.flatMap((name) => {
    const path = files[name];
    return path === undefined ? [] : [`${tlsParameters[name]}=${encodeURIComponent(path)}`];
  });
  return `${url}${url.includes("?") ? "&" : "?"}${parameters.join("&")}`;
}

/** Whether an address of Redis means TLS. */
export function isForTls(url: string): boolean {
  return /^rediss[:+]/i.test(url);
}

/** Whether the address has a user name or a password for Redis itself. */
export function holdsRedisUser(url: string): boolean {
  const [, authority = ""] = /:\/\/([^/?]*)/.exec(url) ?? [];
  return authority.includes("@") || /[?&](?:username|password)=/.test(url);
}

/** @returns the parts, or the fault */
function readRedisUrl(given: string): RedisPlace | string {
  const { url, files } = splitTlsFiles(given);
  const place = readPlace(url, isForTls(url) ? files : undefined);
  return typeof place !== "string" && place.tls === undefined && namesFiles(files) ? "is not for TLS" : place;
}

/** @returns the address without its files for TLS, and the files */
function splitTlsFiles(url: string): { readonly url: string; readonly files: TlsFiles } {
  const [, before = "", query] = /^([^?]*)\?(.*)$/s.exec(url) ?? [];
  if (query === undefined) return { url, files: {} };
  const parameters = new URLSearchParams(query);
  const path = (name: keyof TlsFiles) => parameters.get(tlsParameters[name]) ?? undefined;
  const files = { ca: path("ca"), cert: path("cert"), key: path("key") };
  if (!namesFiles(files)) return { url, files };
  const others = query.split("&").filter((one) => !tlsNames.some((name) => one.startsWith(`${tlsParameters[name]}=`)));
  return { url: others.length === 0 ? before : `${before}?${others.join("&")}`, files };
}

/** @param tls the files of an address for TLS */
function readPlace(url: string, tls: TlsFiles | undefined): RedisPlace | string {
  if (url.startsWith("/")) return { kind: "server", url, tls };
  const wanted =
    "begin with redis://, redis+sentinel:// or redis+cluster:// (with rediss in place of redis for TLS), " +
    "or be the path of a Unix socket";
  const given = hostAndPort.test(url) ? `redis://${url}` : url;
  const fault = schemeFault(given, redisSchemes, wanted);
  if (fault !== undefined) return fault;
  const [, kind] = /^rediss?\+(sentinel|cluster):/i.exec(given) ?? [];
  if (kind === undefined) return hostFault(given) ?? { kind: "server", url: given, tls };
  return readManyHosts(given, kind.toLowerCase() === "sentinel" ? "sentinel" : "cluster", tls);
}

/** Reads `scheme://user:password@host:port,host:port/path?parameters`. */
function readManyHosts(url: string, kind: "sentinel" | "cluster", tls: TlsFiles | undefined): RedisPlace | string {
  const [, authority = "", path = "", query = ""] = /^[^:]+:\/\/([^/?]*)\/?([^?]*)\??(.*)$/s.exec(url) ?? [];
  const parameters = new URLSearchParams(query);
  const known = kind === "sentinel" ? sentinelParameters : new Set<string>();
  if ([...parameters.keys()].some((parameter) => !known.has(parameter)))
    return `has a parameter that is not known${kind === "sentinel" ? `: there are ${[...known].join(" and ")}` : ""}`;
  const at = authority.lastIndexOf("@");
  const credentials = readCredentials(authority.slice(0, Math.max(at, 0)));
  if (credentials === undefined) return "must hold its user name and password in percent-encoding";
  const places = authority
    .slice(at + 1)
    .split(",")
    .map((place) => readHost(place, PORTS[kind]));
  const hosts = places.filter((place) => place !== undefined);
  if (hosts.length < places.length) return "must name hosts, comma-separated, each with a port from 1 to 65535 or none";
  if (kind === "cluster") {
    if (path !== "") return "must end after its hosts: a Cluster has no databases to choose from";
    return { kind, nodes: hosts, tls, ...credentials };
  }
  const [, name, db = "0"] = /^([\w.-]+)(?:\/(\d{1,9}))?$/.exec(path) ?? [];
  if (name === undefined)
    return "must end in the name that the Sentinels know, as in redis+sentinel://host:26379,host:26379/main";
  const sentinelCredentials = {
    username: parameters.get("sentinel_username") ?? undefined,
    password: parameters.get("sentinel_password") ?? undefined,
  };
  return { kind, sentinels: hosts, sentinelCredentials, name, db: Number(db), tls, ...credentials };
}

function readHost(text: string, usualPort: number): HostAndPort | undefined {
  // The regular expression refuses "a/b" and "a@b", which `URL` would take for a host with a path
  // or a user.
  if (!/^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(text) || !URL.canParse(`redis://${text}`)) return undefined;
  const { hostname, port } = new URL(`redis://${text}`);
  if (port === "0") return undefined;
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? usualPort : Number(port) };
}

/** @returns undefined if the percent-encoding is invalid */
function readCredentials(userinfo: string): Credentials | undefined {
  const colon = userinfo.indexOf(":");
  const [username, password] = colon === -1 ? [userinfo, ""] : [userinfo.slice(0, colon), userinfo.slice(colon + 1)];
  const decoded = (text: string) => (text === "" ? undefined : decodeURIComponent(text));
  try {
    return { username: decoded(username), password: decoded(password) };
  } catch {
    return undefined;
  }
}

const natsSchemes: ReadonlySet<string> = new Set(["nats", "tls"]);

/** @returns the fault, as the end of a sentence; undefined for a valid address */
export function natsUrlFault(urls: string): string | undefined {
  const wanted = "begin with nats:// or tls://";
  for (const url of natsServers(urls)) {
    const given = url.includes("://") ? url : `nats://${url}`;
    const fault = schemeFault(given, natsSchemes, wanted) ?? hostFault(given);
    if (fault !== undefined) return fault;
    // The client library drops credentials, and the server would refuse every attempt.
    const { username, password } = new URL(given);
    if (username !== "" || password !== "") return "must not hold credentials: they are not used yet";
  }
  return undefined;
}

/**
 * Whether an address of NATS means TLS in any case. A client of `nats://` uses TLS if the server
 * asks for it, which somebody between them could take away.
 */
export function isNatsForTls(urls: string): boolean {
  return natsServers(urls).some((url) => /^tls:/i.test(url));
}

/** The addresses of a comma-separated list. */
export function natsServers(urls: string): string[] {
  return urls.split(",").map((url) => url.trim());
}

function schemeFault(url: string, schemes: ReadonlySet<string>, wanted: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1];
  if (scheme === undefined) return `must ${wanted}; it names no scheme`;
  return schemes.has(scheme.toLowerCase()) ? undefined : `must ${wanted}; ${scheme}:// is not known`;
}

function hostFault(url: string): string | undefined {
  const host = URL.canParse(url) ? new URL(url).hostname : "";
  return host === "" ? "is no URL with a host and a port from 0 to 65535" : undefined;
}
