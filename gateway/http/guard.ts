/**
 * The one place that says whose an HTTP request is. Every door asks here, before it reads the body,
 * and passes the owner on with the request; no later code decides again.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { DEFAULT_TENANT, isTenant } from "#shared/contract/tenant.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Authenticator } from "../auth/authenticator.js";
import type { EndReader, OpenReaders } from "../auth/open-readers.js";
import type { CallRates } from "../auth/call-rates.js";
import type { ReaderCounts } from "../auth/reader-counts.js";
import { allows } from "../auth/owner/globs.js";
import { budgetOf } from "../auth/owner/limits.js";
import { anyOwner, type Owner } from "../auth/owner/owner.js";
import { requireScope, type Scope } from "../auth/owner/scopes.js";
import type { MetricsToken } from "#shared/metrics/readers.js";
import type { RestrictedApis } from "../auth/restricted-apis.js";
import type { OpenGroup } from "#shared/listening/settings.js";
import type { Tenants } from "../auth/tenants.js";
import { factsOf, type AnswerFacts } from "../facts/answer-facts.js";
import type { Share } from "./fair-start.js";
import { Peers } from "./peers.js";
import type { AuditedRequest } from "./request-audit.js";

/** The parts of a request that may have a credential. */
export interface Asking {
  readonly headers: IncomingHttpHeaders;
  readonly target: string;
  /** The address of the other side of the connection, which may be a proxy. */
  readonly peer?: string | undefined;
  /** Every header as it came, by its name; absent if each came once. */
  readonly distinct?: () => Readonly<Record<string, readonly string[] | undefined>>;
  /** The request that the path reads; absent if no ticket opens the path. */
  readonly reads?: string | undefined;
  /** For the owner; absent if there is no access log. */
  readonly facts?: AnswerFacts | undefined;
}

export interface RequestNotes {
  /** Notes a refusal; errors that are no refusal of a key or right are ignored. */
  refused(error: unknown, incoming: AuditedRequest, requestId?: string): void;
  /** Notes that a limit of the owner has refused a request. */
  limited(owner: Owner, error: InferenceError, incoming?: AuditedRequest): void;
  /** Notes that an operator acts for a tenant. */
  acted(operator: Owner, tenant: string): void;
}

export interface Guard {
  /** Counts a call that admits nothing; absent if nobody counts. @throws InferenceError */
  readonly countCall?: (owner: Owner) => void;
  /**
   * Counts a reader that stays open; absent if nobody counts.
   * @returns a function to call when the reader's connection has closed
   * @throws InferenceError `stream_limit`
   */
  readonly countReader?: (owner: Owner) => () => void;
  /** Whether a request without a credential is refused before its path is looked at. */
  readonly asks: boolean;
  /** The groups of paths that need no credential. */
  readonly open: ReadonlySet<OpenGroup>;
  /** The APIs that ask for a header of their own, beside the credential. */
  readonly restricted?: RestrictedApis | undefined;
  /** Hears of refused requests; undefined for a guard whose refusals are no matter of keys. */
  readonly audit?: RequestNotes | undefined;
  /**
   * @returns a promise if Redis has to be asked
   * @throws InferenceError
   */
  ownerOf(asking: Asking): Owner | Promise<Owner>;
  /**
   * Whose share of the gateway's time a request takes. Asks nobody, and notes nothing. Absent if
   * all clients are one tenant.
   */
  readonly shareOf?: (asking: Asking) => Share;
  /**
   * Watches the key of something that stays open.
   * @param end called when the owner's key is good no longer
   * @returns a function to call when the client has left
   */
  watch(owner: Owner, end: EndReader): () => void;
}

/** Those that ask whether the gateway is alive have as much as the heaviest tenant. */
const HEALTH: Share = { name: "health", weight: 100 };
const ANONYMOUS: Share = { name: "without a credential", weight: 1 };
const TICKETS: Share = { name: "with a ticket", weight: 1 };
/** Requests with a token or key that is not known. Guessed keys do not hold up new tokens. */
const NEW_TOKENS: Share = { name: "with a new token", weight: 1 };
const STRANGERS: Share = { name: "with another credential", weight: 1 };

const health = /^\/(?:v2\/)?health(?:\/|\?|$)/;
const tokenLike = /^bearer +[\w-]+\.[\w-]+\.[\w-]* *$/i;
const ticketLike = /[?&]ticket=|baton\.ticket\./;

/** The share of a request whose owner is not known. */
function strangersShare({ headers, target }: Asking): Share {
  if (hasCredential(headers)) return tokenLike.test(headers.authorization ?? "") ? NEW_TOKENS : STRANGERS;
  return ticketLike.test(`${target} ${headers["sec-websocket-protocol"] ?? ""}`) ? TICKETS : ANONYMOUS;
}

/** The texts of a header, as often as it came. */
function headersOf({ headers, distinct }: Asking): (name: string) => readonly string[] {
  const all = distinct?.();
  return (name) => {
    if (all !== undefined) return all[name] ?? [];
    const text = headers[name];
    return typeof text === "string" ? [text] : [];
  };
}

function credentialOf({ target }: Asking, textsOf: ReturnType<typeof headersOf>) {
  const apiKey = [...textsOf("api-key"), ...textsOf("x-api-key")];
  return { authorization: textsOf("authorization"), apiKey, target };
}

const unwatched: Guard["watch"] = () => () => undefined;

/**
 * Lets every request in. The tenant comes from a header that an authenticating proxy sets. Refuses
 * a request for a tenant's things without this header, because the request bypassed the proxy and
 * would see data of the default tenant.
 * @param header name of the header; empty if all clients are one tenant
 * @param peers the proxies from which the header counts; if none are named, it counts from all
 */
export function openGuard(header = "", peers = new Peers(), weights?: ReadonlyMap<string, number>): Guard {
  const name = header.toLowerCase();
  const open: ReadonlySet<OpenGroup> = new Set();
  const everyone = anyOwner(DEFAULT_TENANT);
  if (name === "") return { asks: false, open, ownerOf: () => everyone, watch: unwatched };
  return {
    asks: false,
    open,
    ownerOf({ headers, peer }) {
      if (peers.areNamed && !peers.isTrusted(peer)) throw fixedError("forbidden", "notProxy");
      const value = headers[name];
      if (value === undefined) throw fixedError("forbidden", "noTenant");
      if (typeof value !== "string" || !isTenant(value)) throw fixedError("invalid_argument", "tenant");
      return anyOwner(value);
    },
    shareOf({ headers, target, peer }) {
      if (health.test(target)) return HEALTH;
      const value = headers[name];
      const isTold = typeof value === "string" && isTenant(value) && (!peers.areNamed || peers.isTrusted(peer));
      return isTold ? { name: value, weight: weights?.get(value) ?? 1 } : STRANGERS;
    },
    watch: unwatched,
  };
}

/** Names the tenant for which an operator acts. */
const ACT_FOR = "baton-tenant";

/** The path that Prometheus asks with the token of metrics. */
const TARGETS = /^\/v2\/fleet\/targets(?:[?#]|$)/;
/** Prometheus, which has no key. */
const scraper: Owner = {
  tenant: DEFAULT_TENANT,
  keyId: undefined,
  scopes: new Set(["operator"]),
  models: [],
  mayUse: () => false,
};

export interface KeyGuardParts {
  readonly authenticator: Pick<Authenticator, "judge">;
  /** Knows owners without asking; if absent, nobody needs to know. */
  readonly known?: Authenticator["known"];
  readonly tenants: Pick<Tenants, "termsOf">;
  readonly readers: Pick<OpenReaders, "add">;
  readonly calls?: Pick<CallRates, "take">;
  readonly readerCounts?: Pick<ReaderCounts, "take">;
  readonly audit?: RequestNotes;
  readonly restricted?: RestrictedApis | undefined;
  /** Opens the list of processes with metrics; absent if there is no such token. */
  readonly metricsToken?: Pick<MetricsToken, "isIn"> | undefined;
  /** Of tenants whose records have none. */
  readonly weights?: ReadonlyMap<string, number> | undefined;
}

/** Lets requests with a credential in. */
export function keyGuard(
  {
    authenticator,
    known,
    tenants,
    readers,
    calls,
    readerCounts,
    audit,
    restricted,
    metricsToken,
    weights,
  }: KeyGuardParts,
  open: ReadonlySet<OpenGroup>,
): Guard {
  return {
    asks: true,
    open,
    audit,
    restricted,
    shareOf(asking) {
      if (health.test(asking.target)) return HEALTH;
      const textsOf = headersOf(asking);
      const owner = hasCredential(asking.headers) ? known?.(credentialOf(asking, textsOf)) : undefined;
      if (owner === undefined) return strangersShare(asking);
      const [named = "", another] = textsOf(ACT_FOR);
      const actsFor = owner.scopes.has("operator") && another === undefined && isTenant(named) ? named : owner.tenant;
      const weight = actsFor === owner.tenant ? owner.budget?.weight : undefined;
      return { name: actsFor, weight: weight ?? weights?.get(actsFor) ?? 1 };
    },
    ownerOf(asking) {
      const { target, reads } = asking;
      const textsOf = headersOf(asking);
      if (metricsToken !== undefined && TARGETS.test(target)) {
        const [text, another] = textsOf("authorization");
        if (another === undefined && metricsToken.isIn(text)) return scraper;
      }
      const owner = authenticator.judge({
        ...credentialOf(asking, textsOf),
        tickets:
          reads === undefined
            ? undefined
            : { texts: ticketsIn(target, textsOf("sec-websocket-protocol")), request: reads },
      });
      const named = textsOf(ACT_FOR);
      return named.length === 0 ? owner : actingFor(named, owner, tenants, audit);
    },
    ...(calls && { countCall: (owner: Owner) => calls.take(owner) }),
    ...(readerCounts && { countReader: (owner: Owner) => readerCounts.take(owner) }),
    watch: ({ keyId = "", openAs = keyId }, end) => readers.add(openAs, end),
  };
}

/**
 * @param named the tenants that the request names
 * @returns the owner of a request that an operator makes for another tenant
 * @throws InferenceError
 */
async function actingFor(
  named: readonly string[],
  asked: Owner | Promise<Owner>,
  tenants: KeyGuardParts["tenants"],
  audit: RequestNotes | undefined,
): Promise<Owner> {
  const owner = requireScope(await asked, "operator");
  const [tenant = "", another] = named;
  if (another !== undefined || !isTenant(tenant)) throw fixedError("invalid_argument", "tenant");
  const { mayUse, limited } = await tenants.termsOf(tenant);
  audit?.acted(owner, tenant);
  const budget = budgetOf(owner.key, limited, owner.keyId);
  return { ...owner, tenant, budget, mayUse: (model) => allows(owner.models, model) && mayUse(model) };
}

/** How a page in a browser gives a ticket to its WebSocket, which takes no headers. */
export const TICKET_PROTOCOL = "baton.ticket.";

/** @param protocols the headers with the protocols of a WebSocket */
function ticketsIn(target: string, protocols: readonly string[]): string[] {
  const query = target.slice(target.indexOf("?") + 1).replace(/#.*$/, "");
  const inQuery = target.includes("?") ? new URLSearchParams(query).getAll("ticket") : [];
  const offered = protocols.flatMap((header) => header.split(",")).map((one) => one.trim());
  const inProtocols = offered.filter((one) => one.startsWith(TICKET_PROTOCOL));
  return [...inQuery, ...inProtocols.map((one) => one.slice(TICKET_PROTOCOL.length))].filter((one) => one !== "");
}

/**
 * Node joins several headers of one name, or keeps only the first.
 * @param reads see `Asking`
 */
export function askingOf(incoming: IncomingMessage, reads?: string): Asking {
  const { headers, url = "", socket } = incoming;
  const facts = factsOf(incoming);
  return { headers, target: url, peer: socket.remoteAddress, distinct: () => incoming.headersDistinct, reads, facts };
}

/** Whether a request to a path that needs no credential has one, and so says who asks. */
export function hasCredential(headers: IncomingHttpHeaders): boolean {
  return ["authorization", "api-key", "x-api-key"].some((name) => headers[name] !== undefined);
}

/**
 * Judges a request to a path.
 * @param right which the path asks for; `any` if it asks for none
 * @returns a promise if Redis has to be asked
 * @throws InferenceError
 */
export function admitTo(guard: Guard, asking: Asking, right: Scope | "any"): Owner | Promise<Owner> {
  const owner = guard.ownerOf(asking);
  if (right === "any") return owner;
  return owner instanceof Promise ? owner.then((found) => requireScope(found, right)) : requireScope(owner, right);
}

/**
 * Judges a request that admits nothing, and counts the call.
 * @throws InferenceError
 */
export function admitCall(guard: Guard, asking: Asking, right: Scope | "any"): Owner | Promise<Owner> {
  const owner = admitTo(guard, asking, right);
  const counted = (found: Owner): Owner => {
    try {
      guard.countCall?.(found);
    } catch (error) {
      if (error instanceof InferenceError) guard.audit?.limited(found, error);
      throw error;
    }
    return found;
  };
  return owner instanceof Promise ? owner.then(counted) : counted(owner);
}

/** A judgement holds for so long, in ms. */
const JUDGED_FOR_MS = 1_000;

/**
 * Judges a request again when its body has come. A client may keep the body back until its key is
 * revoked, or has fewer rights.
 * @returns a function that gives the owner, if it has judged again; it throws an InferenceError
 */
export function laterJudgement(guard: Guard, asking: Asking, right: Scope | "any"): () => Promise<Owner | undefined> {
  let judgedAt = performance.now();
  return async () => {
    if (performance.now() - judgedAt < JUDGED_FOR_MS) return undefined;
    const owner = await admitTo(guard, asking, right);
    judgedAt = performance.now();
    return owner;
  };
}
