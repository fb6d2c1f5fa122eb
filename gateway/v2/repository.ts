/** The repository's index. Loading and unloading are not the gateway's: workers load what their own directory holds. */
import type { IncomingMessage } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { ModelDirectory } from "../models.js";
import type { Bodies } from "./bodies.js";
import type { Limits } from "./limits.js";
import { parseRequestJson } from "./parse-infer.js";
import { errorReply, jsonReply, type Reply } from "./reply.js";

export async function repositoryIndex(
  incoming: IncomingMessage,
  bodies: Bodies,
  directory: ModelDirectory,
  limits: Limits,
): Promise<Reply> {
  const readyOnly = await bodies.use(
    incoming,
    { maxBytes: limits.controlBytes },
    (body) => body.length > 0 && isReadyOnly(parseRequestJson(body)),
  );
  const ready = directory.all().map(({ name, version }) => ({ name, version, state: "READY" }));
  if (readyOnly) return jsonReply(ready);
  const served = new Set(ready.map(({ name, version }) => `${name}/${version}`));
  const unavailable = directory
    .failed()
    .filter(({ name, version }) => !served.has(`${name}/${version}`))
    .map(({ name, version, reason }) => ({ name, version, state: "UNAVAILABLE", reason }));
  return jsonReply([...ready, ...unavailable]);
}

function isReadyOnly({ ready = false }: JsonObject): boolean {
  if (typeof ready === "boolean") return ready;
  throw new InferenceError("invalid_argument", "Invalid value for 'ready': expected a boolean");
}

/** Triton's status here is 503, but nothing changes by waiting: so not one of the codes that ask for a retry. */
export function loadRefused(): Reply {
  return errorReply("unsupported", "explicit model load / unload is not allowed if polling is enabled", 503);
}
