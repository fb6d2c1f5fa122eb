/** Receives the files that clients upload, and sends the files that clients download. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FileTerms } from "../files/files.js";
import { UnsupportedEncoding } from "../formats/errors.js";
import type { Reply } from "../formats/reply.js";
import { ParameterError } from "../generation/parameters.js";
import type { Caller } from "../service/caller.js";
import type { FileService } from "../service/files.js";
import { wantBody } from "../http/body.js";
import { readIdempotencyKey } from "../http/headers.js";
import { endWithKey } from "../http/opened.js";
import { Form } from "./file-form.js";

const FIELDS = ["purpose", "expires_after[anchor]", "expires_after[seconds]"];
/** OpenAI's bounds of `expires_after`, in seconds. */
const EXPIRES_S = { least: 3_600, most: 2_592_000 };
const MOST_NAME = 255;
/** A generous bound for the bytes of a form beside its file. */
const FORM_BYTES = 65_536;

/**
 * Stores the file of a form. After a refusal a part of the form may not have come yet.
 * @param stillAllowed throws if the client may upload no longer
 * @throws InferenceError
 */
export async function upload(
  files: FileService,
  caller: Caller,
  incoming: IncomingMessage,
  stillAllowed: () => void,
): ReturnType<FileService["write"]> {
  const { headers } = incoming;
  const key = readIdempotencyKey(headers);
  if ((headers["content-encoding"] ?? "identity") !== "identity") throw new UnsupportedEncoding();
  // If a request declares its length, a refusal need not wait for the whole upload.
  const declared = Number(headers["content-length"] ?? 0);
  await files.needRoom(caller, Math.max(declared - FORM_BYTES, 0));
  wantBody(incoming);
  const form = new Form(incoming, FIELDS);
  const { name, content } = await form.file;
  if (form.fields.has("purpose")) readTerms(form.fields, name);
  const terms = async () => {
    await form.ended;
    stillAllowed();
    return readTerms(form.fields, name);
  };
  return files.write(caller, content, terms, key);
}

/** @throws ParameterError */
function readTerms(fields: ReadonlyMap<string, string>, name: string): FileTerms {
  const purpose = fields.get("purpose");
  if (purpose !== "batch") {
    const given = purpose === undefined ? "purpose must be given" : `purpose '${purpose}' is not served`;
    throw new ParameterError("purpose", `${given}; it must be 'batch'`);
  }
  if (name === "" || name.length > MOST_NAME) {
    throw new ParameterError("file", `the file must have a name of 1 to ${MOST_NAME} characters`);
  }
  const [anchor, seconds] = [fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")];
  if (anchor === undefined && seconds === undefined) return { name, purpose };
  if (anchor !== "created_at") {
    throw new ParameterError("expires_after[anchor]", "expires_after[anchor] must be 'created_at'");
  }
  const lasts = /^\d{1,9}$/.test(seconds ?? "") ? Number(seconds) : 0;
  const { least, most } = EXPIRES_S;
  if (lasts >= least && lasts <= most) return { name, purpose, ttlMs: lasts * 1_000 };
  throw new ParameterError("expires_after[seconds]", `expires_after[seconds] must be from ${least} to ${most}`);
}

/**
 * Writes the file's bytes as fast as the client reads.
 * @returns undefined if the bytes are written
 * @throws InferenceError if the first bytes cannot be read
 */
export async function download(
  { file, content }: Awaited<ReturnType<FileService["read"]>>,
  outgoing: ServerResponse,
): Promise<Reply | undefined> {
  const headers = {
    "content-type": "application/octet-stream",
    "content-length": String(file.bytes),
    "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`,
    "x-content-type-options": "nosniff",
  };
  if (outgoing.req.method === "HEAD") return { status: 200, headers, body: [] };
  endWithKey(outgoing, () => outgoing.destroy());
  try {
    // The first piece comes before the head, so that a refusal still sets the status.
    let { value: piece } = await content.next();
    outgoing.writeHead(200, headers);
    for (; piece !== undefined; { value: piece } = await content.next()) {
      if (outgoing.destroyed) return undefined;
      if (!outgoing.write(piece)) await roomIn(outgoing);
    }
    outgoing.end();
  } catch (error) {
    if (!outgoing.headersSent) throw error;
    outgoing.destroy();
  } finally {
    await content.return(undefined);
  }
  return undefined;
}

/** Resolves when the client has read enough, or has gone. */
function roomIn(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.on("drain", done).on("close", done);
    if (outgoing.destroyed) done();
  });
}
