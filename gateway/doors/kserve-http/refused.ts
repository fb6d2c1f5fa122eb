/**
 * Paths of Triton that refuse every request, so that Triton's clients hear the reason. A part of
 * Triton's paths for shared memory answers: there are no regions.
 */
import { z } from "zod";
import { fixedError, type InferenceError } from "#shared/errors.js";
import type { Scope } from "../../auth/owner/scopes.js";
import { endpointsOf, type Endpoint, type Method } from "../../api/endpoint/endpoint.js";
import { errorReply } from "../../formats/errors.js";
import { jsonReply } from "../../formats/reply.js";

const repository = endpointsOf<unknown>("model-repository");
const memory = endpointsOf<unknown>("shared-memory");

export const refusedEndpoints = [
  ...["load", "unload"].flatMap(modelControl),
  ...["/v2/systemsharedmemory", "/v2/cudasharedmemory"].flatMap(sharedMemory),
];

/** @param refuse makes the error */
function refused(
  declare: typeof memory,
  method: Method,
  path: string,
  does: string,
  refuse: () => InferenceError,
  otherRight?: Scope,
): Endpoint<unknown> {
  return declare({
    method,
    path,
    ...(otherRight !== undefined && { otherRight }),
    does,
    answers: {},
    refusals: ["unsupported"],
    handle() {
      throw refuse();
    },
  });
}

/**
 * Refuses loading and unloading, because workers load the contents of their own directory. Triton's
 * status for that is 503, but waiting changes nothing, so the code asks for no retry.
 */
function modelControl(action: string): Endpoint<unknown>[] {
  const does = `Refuses to ${action} a model.`;
  return [
    repository({
      method: "POST",
      path: `/v2/repository/models/:model/${action}`,
      otherRight: "operator",
      does,
      answers: {
        503: {
          says: "Workers load and unload models by themselves.",
          shape: () => z.strictObject({ error: z.string(), code: z.literal("unsupported") }),
        },
      },
      handle: () => errorReply(fixedError("unsupported", "modelControl"), "kserve", 503),
    }),
    refused(
      repository,
      "POST",
      `/v2/repository/:repository/models/:model/${action}`,
      does,
      () => fixedError("unsupported", "repositoryName"),
      "operator",
    ),
  ];
}

function sharedMemory(kind: string): Endpoint<unknown>[] {
  const disabled = () => fixedError("unsupported", "sharedMemory");
  return [
    noRegions(`${kind}/status`),
    noRegions(`${kind}/region/:region/status`),
    refused(memory, "POST", `${kind}/region/:region/register`, "Refuses to register shared memory.", disabled),
    refused(memory, "POST", `${kind}/region/:region/unregister`, "Refuses to unregister shared memory.", disabled),
    refused(memory, "POST", `${kind}/unregister`, "Refuses to unregister all shared memory.", disabled),
  ];
}

function noRegions(path: string): Endpoint<unknown> {
  return memory({
    method: "GET",
    path,
    does: "Lists the regions of shared memory, of which there are none.",
    answers: { 200: { says: "An empty list.", shape: () => z.array(z.never()) } },
    handle: () => jsonReply([]),
  });
}
