/**
 * The console: a page for browsers, with its script and its style. The files hold no data, so every
 * caller gets them; the page reads data from the other declared paths, with the key of its user.
 */
import { endpointsOf } from "../../api/endpoint/endpoint.js";
import { withHeaders, type Reply } from "../../formats/reply.js";
import { compress } from "../../http/compress.js";
import type { ConsoleFile, ConsoleFiles } from "./files.js";

const endpoint = endpointsOf<ConsoleFiles>("none");

const PAGE_PATH = "/console/";

/** A browser runs, loads and asks only what comes from this gateway, and no site may frame it. */
const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
} as const;

/** The name of such a file changes with its content, so a browser never asks for it again. */
const IMMUTABLE = "public, max-age=31536000, immutable";

const noSuchFile: Reply = {
  status: 404,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: ["the console has no such file\n"],
};

export const consoleEndpoints = [
  endpoint({
    method: "GET",
    path: "/console",
    open: "always",
    does: "Leads to the page of the console.",
    headers,
    answers: { 308: { says: "The page is at `/console/`." } },
    handle: () => ({ status: 308, headers: { location: PAGE_PATH }, body: [] }),
  }),
  endpoint({
    method: "GET",
    path: PAGE_PATH,
    open: "always",
    does: "Gives the page of the console.",
    headers,
    answers: {
      200: { says: "The page, which asks for a key if the gateway does.", mediaType: "text/html" },
      304: { says: "The page is the one that the browser has." },
    },
    async handle({ incoming }, { page, pageTag }) {
      // Some clients get the page compressed, and others do not: the tag names the content.
      const tag = `W/"${pageTag}"`;
      const cached = { etag: tag, "cache-control": "no-cache" };
      if (hasTag(incoming.headers["if-none-match"], tag)) return { status: 304, headers: cached, body: [] };
      return fileReply(page, incoming.headers["accept-encoding"], cached);
    },
  }),
  endpoint({
    method: "GET",
    path: "/console/:file",
    open: "always",
    does: "Gives the script or the style of the console's page.",
    headers,
    answers: {
      200: { says: "The file. Its name has a hash of its content.", mediaType: ["text/javascript", "text/css"] },
      404: { says: "The console has no such file, because its version is another.", mediaType: "text/plain" },
    },
    async handle(asked, { hashed }) {
      const file = hashed.get(asked.segment("file"));
      if (file === undefined) return noSuchFile;
      return fileReply(file, asked.incoming.headers["accept-encoding"], { "cache-control": IMMUTABLE });
    },
  }),
];

function fileReply(
  { mediaType, bytes }: ConsoleFile,
  acceptEncoding: string | undefined,
  cached: Readonly<Record<string, string>>,
): Promise<Reply> {
  const whole: Reply = { status: 200, headers: { "content-type": mediaType }, body: [bytes] };
  return compress(withHeaders(whole, { ...cached, vary: "accept-encoding" }), acceptEncoding);
}

/** @param header the tags that the browser has: `*`, or a list, weak or not */
function hasTag(header: string | undefined, tag: string): boolean {
  const known = header?.split(",").map((one) => one.trim()) ?? [];
  return known.some((one) => one === "*" || one === tag || `W/${one}` === tag);
}
