/** `/openapi.json`: the document of the HTTP API. */
import { jsonTextReply } from "../../formats/reply.js";
import { endpointsOf } from "./endpoint.js";

/** The text of the document, which is made at its first request. */
export interface ApiDocument {
  readonly text: string;
}

const endpoint = endpointsOf<ApiDocument>("none");

export const documentEndpoints = [
  endpoint({
    method: "GET",
    path: "/openapi.json",
    does: "Describes this API in OpenAPI 3.1.",
    answers: { 200: { says: "The document.", mediaType: "application/json" } },
    handle: (_, document) => jsonTextReply(document.text),
  }),
];
