/**
 * What is wrong with the address of a broker, in words. The clients take nearly any text for an
 * address, most of it for the path of a socket, and would try for ever. What is refused is never
 * repeated whole: an address may hold a password.
 */

/** Both clients take these without a scheme, too. */
const hostAndPort = /^[\w.-]+:\d+$/;
const redisSchemes: ReadonlySet<string> = new Set(["redis", "rediss"]);

/** Undefined for what the client can be given. */
export function redisUrlFault(url: string): string | undefined {
  if (url.startsWith("/")) return undefined;
  const wanted = "begin with redis:// (or rediss:// for TLS), or be the path of a Unix socket";
  const given = hostAndPort.test(url) ? `redis://${url}` : url;
  return schemeFault(given, redisSchemes, wanted) ?? hostFault(given);
}

/** Undefined for what the client can be given. */
export function natsUrlFault(urls: string): string | undefined {
  const wanted = "begin with nats:// (TLS is used where the server wants it)";
  for (const url of natsServers(urls)) {
    const given = url.includes("://") ? url : `nats://${url}`;
    const fault = schemeFault(given, new Set(["nats"]), wanted) ?? hostFault(given);
    if (fault !== undefined) return fault;
    // The client drops them, and the server would refuse it for ever.
    const { username, password } = new URL(given);
    if (username !== "" || password !== "") return "must not hold credentials: they are not used yet";
  }
  return undefined;
}

/** The addresses in a list of them. */
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
