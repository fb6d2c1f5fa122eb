/**
 * Paths of Triton that refuse every request, so that Triton's clients hear the reason. A part of
 * Triton's paths for shared memory answers: there are no regions.
 */
import { z } from "zod";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { endpointsOf, type Endpoint, type Method } from "../../api/endpoint/endpoint.js";
import { jsonReply } from "../../formats/reply.js";

const memory = endpointsOf<unknown>("shared-memory");

export const refusedEndpoints = ["/v2/systemsharedmemory", "/v2/cudasharedmemory"].flatMap(sharedMemory);

/** @param refuse makes the error */
function refused(method: Method, path: string, does: string, refuse: () => InferenceError): Endpoint<unknown> {
  return memory({
    method,
    path,
    does,
    answers: {},
    refusals: ["unsupported"],
    handle() {
      throw refuse();
    },
  });
}

function sharedMemory(kind: string): Endpoint<unknown>[] {
  const disabled = () => fixedError("unsupported", "sharedMemory");
  return [
    noRegions(`${kind}/status`),
    noRegions(`${kind}/region/:region/status`),
    refused("POST", `${kind}/region/:region/register`, "Refuses to register shared memory.", disabled),
    refused("POST", `${kind}/region/:region/unregister`, "Refuses to unregister shared memory.", disabled),
    refused("POST", `${kind}/unregister`, "Refuses to unregister all shared memory.", disabled),
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
