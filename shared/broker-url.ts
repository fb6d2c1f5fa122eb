/**
 * Reads the addresses of brokers, and reports faults. The client libraries accept almost any text,
 * mostly as the path of a socket, and would try to connect for ever. A message never quotes a whole
 * address, because the address may contain a password.
 */

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
  | { readonly kind: "server"; readonly url: string }
  /** The primary that the Sentinels name. The credentials are for Redis itself. */
  | ({
      readonly kind: "sentinel";
      readonly sentinels: readonly HostAndPort[];
      readonly sentinelCredentials: Credentials;
      /** The Sentinels' name for this primary. */
      readonly name: string;
      readonly db: number;
      readonly tls: boolean;
    } & Credentials)
  /** The masters of a Redis Cluster. `nodes` are the first nodes to ask. */
  | ({ readonly kind: "cluster"; readonly nodes: readonly HostAndPort[]; readonly tls: boolean } & Credentials);

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

/** @returns the parts, or the fault */
function readRedisUrl(url: string): RedisPlace | string {
  if (url.startsWith("/")) return { kind: "server", url };
  const wanted =
    "begin with redis://, redis+sentinel:// or redis+cluster:// (with rediss in place of redis for TLS), " +
    "or be the path of a Unix socket";
  const given = hostAndPort.test(url) ? `redis://${url}` : url;
  const fault = schemeFault(given, redisSchemes, wanted);
  if (fault !== undefined) return fault;
  const [, tls, kind] = /^redis(s?)(?:\+(sentinel|cluster))?:/i.exec(given) ?? [];
  if (kind === undefined) return hostFault(given) ?? { kind: "server", url: given };
  return readManyHosts(given, kind.toLowerCase() === "sentinel" ? "sentinel" : "cluster", tls !== "");
}

/** Reads `scheme://user:password@host:port,host:port/path?parameters`. */
function readManyHosts(url: string, kind: "sentinel" | "cluster", tls: boolean): RedisPlace | string {
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

/** @returns the fault, as the end of a sentence; undefined for a valid address */
export function natsUrlFault(urls: string): string | undefined {
  const wanted = "begin with nats:// (TLS is used where the server wants it)";
  for (const url of natsServers(urls)) {
    const given = url.includes("://") ? url : `nats://${url}`;
    const fault = schemeFault(given, new Set(["nats"]), wanted) ?? hostFault(given);
    if (fault !== undefined) return fault;
    // The client library drops credentials, and the server would refuse every attempt.
    const { username, password } = new URL(given);
    if (username !== "" || password !== "") return "must not hold credentials: they are not used yet";
  }
  return undefined;
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
