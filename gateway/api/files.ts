/** OpenAI's `/v1/files`: the input and output files of batches. */
import { z } from "zod";
import { filePurposes } from "#shared/queue/files/keep-file.js";
import { errorReply, isRefusal } from "../formats/errors.js";
import { jsonReply, withHeaders } from "../formats/reply.js";
import { ParameterError } from "../generation/parameters.js";
import { endUnread } from "../http/body.js";
import { whileKeyIsGood } from "../http/opened.js";
import { send } from "../http/send.js";
import type { FileService } from "../service/files.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { download, upload } from "./file-transfer.js";
import { listOf, pageShape } from "./endpoint/page.js";
import { text, type Parameter } from "./endpoint/parameters.js";

const endpoint = endpointsOf<FileService>("inference");

/**
 * Files on a usual page, and on the largest page. OpenAI's pages are larger, but `has_more` has the
 * same meaning.
 */
const USUAL_PAGE = 100;
const MOST_PAGE = 1_000;
const MOST_ASKED = 10 * MOST_PAGE;

const fileShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("file"),
    bytes: z.number(),
    created_at: z.number(),
    expires_at: z.number().optional(),
    filename: z.string(),
    purpose: z.enum(filePurposes),
    status: z.literal("processed"),
  });

const limit: Parameter<number> = {
  schema: { type: "integer", minimum: 1, maximum: MOST_ASKED, default: USUAL_PAGE },
  says: `A page has at most ${MOST_PAGE} files, even if the limit is larger.`,
  read: ([given]) => {
    if (given === undefined) return USUAL_PAGE;
    const asked = /^\d{1,5}$/.test(given) ? Number(given) : 0;
    if (asked >= 1 && asked <= MOST_ASKED) return Math.min(asked, MOST_PAGE);
    throw new ParameterError("limit", `limit must be an integer from 1 to ${MOST_ASKED}, not '${given}'`);
  },
};

const order: Parameter<"asc" | "desc"> = {
  schema: { enum: ["asc", "desc"], default: "desc" },
  says: "By the time of the upload; `desc` begins with the newest file.",
  read: ([given = "desc"]) => {
    if (given === "asc" || given === "desc") return given;
    throw new ParameterError("order", "order must be 'asc' or 'desc'");
  },
};

export const fileEndpoints = [
  endpoint({
    method: "GET",
    path: "/v1/files",
    right: "files",
    does: "Lists the files.",
    query: { after: text, limit, order, purpose: text },
    answers: { 200: { says: "A page of files.", shape: () => pageShape(fileShape()) } },
    async handle({ caller, query }, files) {
      const filter = { isNewestFirst: query.order === "desc", purpose: query.purpose };
      const { data, hasMore } = await files.list(caller, query, filter);
      return jsonReply(listOf(data, hasMore));
    },
  }),
  endpoint({
    method: "POST",
    path: "/v1/files",
    right: "files",
    does: "Uploads a file.",
    body: "multipart/form-data",
    answers: { 200: { says: "The file.", shape: fileShape } },
    refusals: ["file_limit", "storage_full", "idempotency_mismatch", "outcome_unknown"],
    async handle({ caller, incoming, outgoing }, files) {
      const free = files.uploads.take(caller.tenant);
      try {
        const { file, isReplayed } = await upload(files, caller, incoming, whileKeyIsGood(outgoing));
        return withHeaders(jsonReply(file), isReplayed ? { "idempotent-replayed": "true" } : {});
      } catch (error) {
        if (!isRefusal(error)) throw error;
        send(outgoing, errorReply(error, "openai"));
        if (!incoming.readableEnded) endUnread(incoming);
        return undefined;
      } finally {
        free();
      }
    },
  }),
  endpoint({
    method: "GET",
    path: "/v1/files/:id",
    right: "files",
    does: "Shows a file.",
    answers: { 200: { says: "The file.", shape: fileShape } },
    refusals: ["unknown_file"],
    handle: async (asked, files) => jsonReply(await files.find(asked.caller, asked.segment("id"))),
  }),
  endpoint({
    method: "DELETE",
    path: "/v1/files/:id",
    right: "files",
    does: "Removes a file.",
    answers: {
      200: {
        says: "The file is gone.",
        shape: () => z.strictObject({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) }),
      },
    },
    refusals: ["unknown_file", "file_in_use", "outcome_unknown"],
    async handle(asked, files) {
      const id = asked.segment("id");
      await files.remove(asked.caller, id);
      return jsonReply({ id, object: "file", deleted: true });
    },
  }),
  endpoint({
    method: "GET",
    path: "/v1/files/:id/content",
    right: "files",
    does: "Downloads a file.",
    answers: { 200: { says: "The file's bytes.", mediaType: "application/octet-stream" } },
    refusals: ["unknown_file"],
    async handle(asked, files) {
      const free = files.downloads.take(asked.caller.tenant);
      try {
        return await download(await files.read(asked.caller, asked.segment("id")), asked.outgoing);
      } finally {
        free();
      }
    },
  }),
];
