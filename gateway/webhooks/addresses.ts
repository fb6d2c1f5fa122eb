/**
 * Checks to which addresses a webhook may lead. The jobs process fetches a tenant's URL from inside
 * our network, so the URL must not reach the services that only this network can reach. The check
 * is about the address of the connection, because a name may lead elsewhere at each look-up, and
 * one address has many spellings.
 */
import { Resolver } from "node:dns/promises";
import ipaddr from "ipaddr.js";

/** The operator's list of ranges. */
export type AddressRanges = readonly (readonly [ipaddr.IPv4 | ipaddr.IPv6, number])[];

export type Scheme = "http" | "https";

/**
 * Ports of servers that would take an HTTP request for a command, or reveal data about our network.
 */
const REFUSED_PORTS: ReadonlySet<string> = new Set(["22", "4222", "6379"]);
const LONGEST_URL = 2_048;
/**
 * All addresses of the Internet are in this range. IPv6 forms of IPv4 addresses are outside, except
 * for 6to4 and Teredo, which `range()` does not call unicast.
 */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");
const LOOPBACK = ["127.0.0.1", "::1"] as const;
/**
 * Time limit of a look-up, in ms. A name without an answer in this time gets its check at the
 * connection.
 */
const RESOLVE_MS = 1_000;

/**
 * Reads ranges, comma-separated: `10.0.0.0/8,fd00::/8`, or single addresses.
 * @returns undefined for any other text
 */
export function parseRanges(list: string): AddressRanges | undefined {
  const ranges: [ipaddr.IPv4 | ipaddr.IPv6, number][] = [];
  for (const part of list.split(",").map((one) => one.trim())) {
    if (part === "") continue;
    // Refuses addresses with fewer than four parts, because their usual meaning surprises most
    // readers.
    const isWhole = part.includes(":") || /^(\d+\.){3}\d+(\/|$)/.test(part);
    if (!isWhole) return undefined;
    if (ipaddr.isValidCIDR(part)) ranges.push(ipaddr.parseCIDR(part));
    else if (ipaddr.IPv4.isValidFourPartDecimal(part)) ranges.push([ipaddr.IPv4.parse(part), 32]);
    else if (ipaddr.IPv6.isValid(part)) ranges.push([ipaddr.IPv6.parse(part), 128]);
    else return undefined;
  }
  return ranges;
}

/**
 * Whether a request may go to this address. A request without encryption may go only to listed
 * ranges.
 */
export function mayConnect(address: string, scheme: Scheme, allowed: AddressRanges): boolean {
  if (!ipaddr.isValid(address)) return false;
  // Treats an IPv4 address within an IPv6 address as IPv4.
  const ip = ipaddr.process(address);
  if (isListed(ip, allowed)) return true;
  return scheme === "https" && ip.range() === "unicast" && (ip.kind() === "ipv4" || ip.match(GLOBAL_IPV6));
}

/** @param ip IPv4 addresses within IPv6 addresses count as IPv4 if the caller has made them so */
export function isListed(ip: ipaddr.IPv4 | ipaddr.IPv6, ranges: AddressRanges): boolean {
  return ranges.some(([range, bits]) => range.kind() === ip.kind() && ip.match(range, bits));
}

/** The address in a URL's host; undefined if the host is a name. */
export function literalOf(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, "$1");
  return ipaddr.isValid(bare) ? bare : undefined;
}

/** Whether a name never leaves a machine (RFC 6761). */
export function isLocalName(hostname: string): boolean {
  return /(^|\.)localhost\.?$/i.test(hostname);
}

/** The fault of a URL, before any look-up of its name; undefined if there is none. */
export function urlFault(text: string, allowed: AddressRanges): string | undefined {
  if (text.length > LONGEST_URL) return `the URL is longer than ${LONGEST_URL} characters`;
  if (!URL.canParse(text)) return "this is no URL";
  const { protocol, hostname, port, username, password, hash } = new URL(text);
  if (protocol !== "https:" && protocol !== "http:") return "the URL must begin with https://";
  if (username !== "" || password !== "") return "the URL must not hold a user name or a password";
  if (hash !== "" || text.includes("#")) return "the URL must not have a fragment: it would not be sent";
  if (REFUSED_PORTS.has(port)) return `port ${port} is not allowed`;
  const scheme = protocol === "https:" ? "https" : "http";
  const literal = literalOf(hostname);
  const known = literal === undefined ? (isLocalName(hostname) ? LOOPBACK : []) : [literal];
  if (known.length > 0 && !known.some((address) => mayConnect(address, scheme, allowed))) return notAllowed(scheme);
  if (scheme === "http" && allowed.length === 0) return notAllowed(scheme);
  return undefined;
}

function notAllowed(scheme: Scheme): string {
  return scheme === "http"
    ? "http:// may lead only to addresses in the ranges that the operator has allowed: use https://"
    : "the URL leads to an address to which nothing is sent";
}

/**
 * The fault of a URL, also by the current addresses of its name; undefined if there is none, or if
 * the name has no address now.
 */
export async function destinationFault(text: string, allowed: AddressRanges): Promise<string | undefined> {
  const fault = urlFault(text, allowed);
  if (fault !== undefined) return fault;
  const { protocol, hostname } = new URL(text);
  if (literalOf(hostname) !== undefined || isLocalName(hostname)) return undefined;
  const scheme = protocol === "https:" ? "https" : "http";
  const found = await addressesOf(hostname);
  const leadsNowhereElse = found.length > 0 && !found.some((address) => mayConnect(address, scheme, allowed));
  return leadsNowhereElse ? notAllowed(scheme) : undefined;
}

/**
 * Asks the name servers directly, because a slow look-up by the system would occupy a thread of the
 * process, which has few.
 * @returns an empty list if the name is unknown, or if no name server answers
 */
async function addressesOf(hostname: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: RESOLVE_MS, tries: 1 });
  const given = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return given.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
}
