/**
 * The door before all routes: what browsers may not do is refused, and what pages of allowed
 * origins may read is told to their browsers.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { chooseRequestId, pathOf } from "./app.js";
import { judge, type BrowserRules, type Verdict } from "./browsers.js";
import { openAiRefusal } from "./openai/errors.js";
import { endUnread } from "./v2/direct.js";
import { errorReply, send, type Reply } from "./v2/reply.js";

/** Every method that a path has here. */
const methods = "GET, HEAD, POST, DELETE";
/** Those of our headers that browsers do not show to pages by themselves. */
const exposed = [
  "baton-request-id",
  "inference-header-content-length",
  "location",
  "preference-applied",
  "retry-after",
  "x-request-id",
].join(", ");
/** How long a browser need not ask again, in seconds; no browser believes much more. */
const maxAge = "600";

/** @returns whether the request goes on to its route; if not, it is answered. */
export function passes(rules: BrowserRules, incoming: IncomingMessage, outgoing: ServerResponse): boolean {
  const { method = "", headers } = incoming;
  const isPreflight = method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
  const acts = isPreflight || !(method === "GET" || method === "HEAD" || method === "OPTIONS");
  const verdict = verdictOn(rules, incoming, acts);
  if (verdict.said === "taken") return true;
  if (verdict.said === "shared") {
    outgoing.setHeader("access-control-allow-origin", verdict.origin);
    outgoing.setHeader("vary", "Origin");
    if (!isPreflight) {
      outgoing.setHeader("access-control-expose-headers", exposed);
      return true;
    }
    allow(incoming, outgoing);
  } else {
    send(outgoing, refusalOf(incoming, verdict), chooseRequestId(headers["x-request-id"]));
  }
  if (!incoming.readableEnded) endUnread(incoming);
  return false;
}

/**
 * What a WebSocket is refused with; undefined where it is not. Whoever opens one reads all that
 * comes, whatever its page's origin.
 */
export function webSocketRefusal(rules: BrowserRules, incoming: IncomingMessage): Reply | undefined {
  const verdict = verdictOn(rules, incoming, true);
  return verdict.said === "taken" || verdict.said === "shared" ? undefined : refusalOf(incoming, verdict);
}

function verdictOn(rules: BrowserRules, { headers, url = "" }: IncomingMessage, acts: boolean): Verdict {
  // A target in full says where it goes, whatever Host says.
  const authority = url.startsWith("/") ? undefined : /^[a-z]+:\/\/([^/?#]*)/i.exec(url)?.[1];
  const site = headers["sec-fetch-site"];
  return judge(rules, {
    authority: authority ?? headers.host,
    origin: headers.origin,
    site: typeof site === "string" ? site : undefined,
    acts,
  });
}

function allow({ headers }: IncomingMessage, outgoing: ServerResponse): void {
  const asked = headers["access-control-request-headers"];
  outgoing.setHeader("vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network");
  outgoing.setHeader("access-control-allow-methods", methods);
  if (asked !== undefined) outgoing.setHeader("access-control-allow-headers", asked);
  if (headers["access-control-request-private-network"] === "true") {
    outgoing.setHeader("access-control-allow-private-network", "true");
  }
  outgoing.setHeader("access-control-max-age", maxAge);
  outgoing.setHeader("x-request-id", chooseRequestId(headers["x-request-id"]));
  outgoing.writeHead(204).end();
}

type Refusal = Extract<Verdict, { said: "malformed" | "refused" }>;

function refusalOf({ url = "" }: IncomingMessage, verdict: Refusal): Reply {
  if (verdict.said === "malformed") return errorReply("invalid_argument", "malformed HTTP request");
  const isOpenAi = pathOf(url).startsWith("/v1/");
  return isOpenAi
    ? openAiRefusal(new InferenceError("forbidden", verdict.message))
    : errorReply("forbidden", verdict.message);
}
