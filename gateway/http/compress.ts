/** Compresses a reply if the client's header Accept-Encoding prefers that. */
import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import { withHeaders, type Reply } from "../formats/reply.js";

/**
 * Below this, compressing costs both ends more than the saved bytes. A server may always answer
 * uncompressed.
 */
const compressFromBytes = 1024;

const compressors = { gzip: promisify(gzip), deflate: promisify(deflate) };

/** @param acceptEncoding the header Accept-Encoding */
export async function compress(reply: Reply, acceptEncoding: string | undefined): Promise<Reply> {
  if (acceptEncoding === undefined) return reply;
  const encoding = preferredEncoding(acceptEncoding);
  if (encoding === "identity") return reply;
  const body = Buffer.concat(reply.body.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  if (body.length < compressFromBytes) return reply;
  const compressed = await compressors[encoding](body);
  return withHeaders({ ...reply, body: [compressed] }, { "content-encoding": encoding });
}

/**
 * Picks the encoding with the highest `q`, and the first of equal ones. Ignores encodings that the
 * header does not name.
 */
function preferredEncoding(header: string): "identity" | "gzip" | "deflate" {
  let preferred: "identity" | "gzip" | "deflate" = "identity";
  let highest = 0;
  for (const choice of header.split(",", 16)) {
    const [name, ...parameters] = choice.split(";").map((part) => part.trim().toLowerCase());
    if (name !== "identity" && name !== "gzip" && name !== "deflate") continue;
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    const q = quality === undefined ? 1 : Number(quality.slice(2));
    if (q > highest) {
      highest = q;
      preferred = name;
    }
  }
  return preferred;
}
