/**
 * Stands before all routes: refuses requests that browsers may not send, and tells browsers which
 * replies pages of allowed origins may read (CORS). The rules are in shared/listening/browsers.ts.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { fixedError, InferenceError } from "#shared/errors.js";
import { endUnread } from "./http/body.js";
import { chooseRequestId } from "./http/headers.js";
import { pathOf } from "./http/router.js";
import type { RequestAudit } from "./http/request-audit.js";
import { judge, type BrowserRules, type Verdict } from "#shared/listening/browsers.js";
import { errorReply, errorShapeOf } from "./formats/errors.js";
import type { Reply } from "./formats/reply.js";
import { send } from "./http/send.js";

/** All methods of all paths. */
const methods = "GET, HEAD, POST, PUT, PATCH, DELETE";
/** Headers of replies that browsers hide from pages unless the reply names them. */
const exposed = [
  "baton-request-id",
  "etag",
  "inference-header-content-length",
  "location",
  "preference-applied",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "retry-after-ms",
  "stream-closed",
  "stream-cursor",
  "stream-next-offset",
  "stream-up-to-date",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "x-request-id",
].join(", ");
/**
 * How long browsers may remember the answer to a preflight, in seconds. Safari's own limit is the
 * same.
 */
const maxAge = "600";

/**
 * Judges a request, and answers here if the request is refused or is a preflight.
 * @returns whether the request may continue to its route
 */
export function passes(
  rules: BrowserRules,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  audit?: RequestAudit,
): boolean {
  const { method = "", headers } = incoming;
  const isPreflight = method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
  const acts = isPreflight || !(method === "GET" || method === "HEAD" || method === "OPTIONS");
  const verdict = verdictOn(rules, incoming, acts);
  if (verdict.said === "allowed") return true;
  if (verdict.said === "shared") {
    outgoing.setHeader("access-control-allow-origin", verdict.origin);
    outgoing.setHeader("vary", "Origin");
    if (!isPreflight) {
      outgoing.setHeader("access-control-expose-headers", exposed);
      return true;
    }
    allow(incoming, outgoing);
  } else {
    send(outgoing, refusalOf(incoming, verdict, audit), chooseRequestId(headers));
  }
  if (!incoming.readableEnded) endUnread(incoming);
  return false;
}

/**
 * Returns the refusal of a WebSocket, or undefined if the page may open it. Browsers let any page
 * read all messages of a WebSocket, so opening one needs the permissions of a change.
 */
export function webSocketRefusal(
  rules: BrowserRules,
  incoming: IncomingMessage,
  audit?: RequestAudit,
): Reply | undefined {
  const verdict = verdictOn(rules, incoming, true);
  return verdict.said === "allowed" || verdict.said === "shared" ? undefined : refusalOf(incoming, verdict, audit);
}

function verdictOn(rules: BrowserRules, { headers, url = "" }: IncomingMessage, acts: boolean): Verdict {
  // A target that is a full URL names the host, and the Host header then counts for nothing.
  const authority = url.startsWith("/") ? undefined : /^[a-z]+:\/\/([^/?#]*)/i.exec(url)?.[1];
  const site = headers["sec-fetch-site"];
  return judge(rules, {
    authority: authority ?? headers.host,
    origin: headers.origin,
    site: typeof site === "string" ? site : undefined,
    acts,
  });
}

/** Answers a browser's preflight with all that the rules allow. */
function allow({ headers }: IncomingMessage, outgoing: ServerResponse): void {
  const asked = headers["access-control-request-headers"];
  outgoing.setHeader("vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network");
  outgoing.setHeader("access-control-allow-methods", methods);
  if (asked !== undefined) outgoing.setHeader("access-control-allow-headers", asked);
  if (headers["access-control-request-private-network"] === "true") {
    outgoing.setHeader("access-control-allow-private-network", "true");
  }
  outgoing.setHeader("access-control-max-age", maxAge);
  outgoing.setHeader("x-request-id", chooseRequestId(headers));
  outgoing.writeHead(204).end();
}

type Refusal = Extract<Verdict, { said: "malformed" | "refused" }>;

function refusalOf(incoming: IncomingMessage, verdict: Refusal, audit?: RequestAudit): Reply {
  if (verdict.said === "malformed") return errorReply(fixedError("invalid_argument", "malformedHttp"));
  audit?.pageRefused(verdict, incoming);
  return errorReply(new InferenceError("forbidden", verdict.message), errorShapeOf(pathOf(incoming.url ?? "")));
}
