/**
 * Health has no body; probes read the status alone. Ready means that a request could be served now: admission works and some
 * model is served. A model that failed somewhere does not make the fleet unready: its own `ready` says so, and the rest runs on.
 */
import type { ModelDirectory } from "../models.js";
import { emptyReply, jsonReply, type Reply } from "./reply.js";

export function liveness(): Reply {
  return emptyReply;
}

export function readiness(directory: ModelDirectory, admissionWorks: boolean): Reply {
  return admissionWorks && directory.all().length > 0 ? emptyReply : { ...emptyReply, status: 400 };
}

/** @throws InferenceError where the model is not known */
export function modelReadiness(directory: ModelDirectory, name: string, version: string | undefined): Reply {
  const model = directory.find(name, version);
  if (directory.isServed(model)) return emptyReply;
  return { ...jsonReply({ error: "Model version not ready" }), status: 400 };
}
