/** OpenAI's `/v1/files`: the input and output files of batches. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { fixedError } from "#shared/errors.js";
import type { StoredFile } from "#shared/queue/files/files.js";
import { askRedis } from "../admission/ask-redis.js";
import { endUnread } from "../http/body.js";
import { UnsupportedEncoding } from "../http/errors.js";
import { readQuery } from "../http/query.js";
import { jsonReply, type Reply } from "../http/reply.js";
import { send } from "../http/send.js";
import { errorReply, isRefusal } from "../http/errors.js";
import type { Handler, Router } from "../http/router.js";
import type { TenantOf } from "../http/tenant.js";
import { ParameterError } from "../generation/parameters.js";
import { newFileId, type Files, type FileTerms } from "./files.js";
import { Form } from "./form.js";

const FIELDS = ["purpose", "expires_after[anchor]", "expires_after[seconds]"];
/**
 * Files on a usual page, and on the largest page. OpenAI's pages are larger, but `has_more` has the
 * same meaning.
 */
const USUAL_PAGE = 100;
const MOST_PAGE = 1_000;
/**
 * Most uploads and downloads at a time. Each holds up to half a MiB. A tenant may have half of the
 * places, so that other tenants find some.
 */
const MOST_UPLOADS = 64;
const MOST_DOWNLOADS = 256;
/** OpenAI's bounds of `expires_after`, in seconds. */
const EXPIRES_S = { least: 3_600, most: 2_592_000 };
const MOST_NAME = 255;
/** A generous bound for the bytes of a form beside its file. */
const FORM_BYTES = 65_536;

export function addFileRoutes(router: Router, files: Files, tenantOf: TenantOf): void {
  const uploads = new Slots(MOST_UPLOADS);
  const downloads = new Slots(MOST_DOWNLOADS);
  const named = (c: Parameters<Handler>[0]) => ({
    tenant: tenantOf(c.env.incoming),
    id: c.req.param("id") ?? "",
  });

  router.add("/v1/files", {
    GET: async ({ env: { incoming } }) => {
      const query = readQuery(incoming, ["after", "limit", "order", "purpose"]);
      const count = readLimit(query.limit);
      const { after, order = "desc", purpose } = query;
      if (order !== "asc" && order !== "desc") throw new ParameterError("order", "order must be 'asc' or 'desc'");
      const terms = { after, count: count + 1, isNewestFirst: order === "desc", purpose };
      const found = await askRedis(() => files.list(tenantOf(incoming), terms));
      if (found === undefined) throw new ParameterError("after", `after names no file: '${after ?? ""}'`);
      const data = found.slice(0, count).map(viewOf);
      const [first_id = null, last_id = null] = [data[0]?.id, data.at(-1)?.id];
      return jsonReply({ object: "list", data, first_id, last_id, has_more: found.length > count });
    },
    POST: async ({ env: { incoming, outgoing } }) => {
      const tenant = tenantOf(incoming);
      const free = uploads.take(tenant);
      try {
        const file = await upload(files, tenant, incoming);
        return jsonReply(viewOf(file));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        send(outgoing, errorReply(error, "openai"));
        if (!incoming.readableEnded) endUnread(incoming);
        return undefined;
      } finally {
        free();
      }
    },
  });
  router.add("/v1/files/:id", {
    GET: async (c) => jsonReply(viewOf(known(await files.find(named(c))))),
    DELETE: async (c) => {
      const address = named(c);
      const said = await files.remove(address);
      if (said === "unknown") throw fixedError("unknown_file", "usual");
      if (said === "in_use") throw fixedError("file_in_use", "usual");
      return jsonReply({ id: address.id, object: "file", deleted: true });
    },
  });
  router.add("/v1/files/:id/content", {
    GET: async (c) => {
      const address = named(c);
      const free = downloads.take(address.tenant);
      try {
        const file = known(await files.find(address));
        return await answerWith(files, file, c.env.outgoing);
      } finally {
        free();
      }
    },
  });
}

/** @throws InferenceError */
async function upload(files: Files, tenant: string, incoming: IncomingMessage): Promise<StoredFile> {
  const { headers } = incoming;
  if ((headers["content-encoding"] ?? "identity") !== "identity") throw new UnsupportedEncoding();
  // If a request declares its length, a refusal need not wait for the whole upload.
  const declared = Number(headers["content-length"] ?? 0);
  await files.needRoom(tenant, Math.max(declared - FORM_BYTES, 0));
  const form = new Form(incoming, FIELDS);
  const { name, content } = await form.file;
  if (form.fields.has("purpose")) readTerms(form.fields, name);
  const terms = async (): Promise<FileTerms> => {
    await form.ended;
    return readTerms(form.fields, name);
  };
  return files.write({ tenant, id: newFileId() }, content, terms);
}

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

/** Writes the file's bytes as fast as the client reads. */
async function answerWith(files: Files, file: StoredFile, outgoing: ServerResponse): Promise<Reply | undefined> {
  const headers = {
    "content-type": "application/octet-stream",
    "content-length": String(file.bytes),
    "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(file.name)}`,
    "x-content-type-options": "nosniff",
  };
  if (outgoing.req.method === "HEAD") return { status: 200, headers, body: [] };
  const content = files.read(file);
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

function viewOf({ id, bytes, createdAt, expiresAt, name, purpose }: StoredFile) {
  return {
    id,
    object: "file",
    bytes,
    created_at: Math.floor(createdAt / 1_000),
    expires_at: expiresAt === undefined ? undefined : Math.floor(expiresAt / 1_000),
    filename: name,
    purpose,
    status: "processed",
  };
}

function known(file: StoredFile | undefined): StoredFile {
  if (file === undefined) throw fixedError("unknown_file", "usual");
  return file;
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return USUAL_PAGE;
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= 10 * MOST_PAGE) return Math.min(limit, MOST_PAGE);
  throw new ParameterError("limit", `limit must be an integer from 1 to ${10 * MOST_PAGE}, not '${text}'`);
}

/**
 * Limits how many uploads or downloads run at a time: `count` together, and half of that for a
 * tenant.
 */
class Slots {
  readonly #count: number;
  #taken = 0;
  readonly #ofTenants = new Map<string, number>();

  constructor(count: number) {
    this.#count = count;
  }

  /**
   * @returns a function that frees the slot
   * @throws InferenceError `unavailable` if no slot is free
   */
  take(tenant: string): () => void {
    const own = this.#ofTenants.get(tenant) ?? 0;
    if (this.#taken === this.#count || own >= this.#count / 2) throw fixedError("unavailable", "uploads");
    this.#add(tenant, 1);
    return () => this.#add(tenant, -1);
  }

  #add(tenant: string, count: 1 | -1): void {
    const own = (this.#ofTenants.get(tenant) ?? 0) + count;
    this.#taken += count;
    if (own === 0) this.#ofTenants.delete(tenant);
    else this.#ofTenants.set(tenant, own);
  }
}
