/**
 * The document of the HTTP API in OpenAPI 3.1, made from the declared endpoints. It is made at its
 * first request, because its shapes take some milliseconds.
 */
import { z } from "zod";
import type { ErrorCode } from "#shared/errors.js";
import { errorShapeOf, openAiCode, type ErrorShape } from "../../formats/errors.js";
import type { Answer, Endpoint } from "./endpoint.js";
import type { Schema } from "./parameters.js";
import { refusalsByStatus } from "./refusals.js";

const JSON_TYPE = "application/json";

/** The bodies of refusals, by the shape of their path. */
const errorSchemas = {
  kserve: {
    type: "object",
    properties: {
      error: { type: "string" },
      code: { type: "string" },
      reason: { type: "string" },
      limit: { type: "string", description: "the limit that refused the request" },
      scope: { enum: ["key", "tenant"], description: "whose limit it is" },
    },
    required: ["error", "code"],
    additionalProperties: false,
  },
  openai: {
    type: "object",
    properties: {
      error: {
        type: "object",
        properties: {
          message: { type: "string" },
          type: { type: "string" },
          param: { type: ["string", "null"] },
          code: { type: "string" },
        },
        required: ["message", "type", "param", "code"],
        additionalProperties: false,
      },
    },
    required: ["error"],
    additionalProperties: false,
  },
};

interface Response {
  readonly description: string;
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

/** @param version of Baton */
export function openApi(endpoints: readonly Endpoint[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of endpoints) {
    const path = (paths[documentPath(endpoint.path)] ??= {});
    path[endpoint.method.toLowerCase()] = operationOf(endpoint);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Baton",
      version,
      description: "A worker fleet that serves models which remember and models which talk.",
    },
    paths,
    components: { schemas: errorSchemas },
  };
}

/** `/v2/x/:id{[0-9]+}` is `/v2/x/{id}` in a document. */
export function documentPath(path: string): string {
  return path.replaceAll(/:(\w+)(?:\{[^}]*\})?/g, "{$1}");
}

function operationOf(endpoint: Endpoint): object {
  const { method, path, does, right, query, ignoresOthers = false } = endpoint;
  const parameters = [...segmentsOf(path), ...queryOf(endpoint)];
  const body = bodyOf(endpoint);
  return {
    operationId: operationId(method, path),
    summary: does,
    ...(right !== undefined && { "x-right": right }),
    "x-other-parameters": query === undefined || ignoresOthers ? "ignored" : "refused",
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: body }),
    responses: responsesOf(endpoint),
  };
}

/** A path with a slash at its end is another operation than the path without. */
function operationId(method: string, path: string): string {
  const words = path.replaceAll(/\{[^}]*\}/g, "").replace(/\/$/, "/page");
  return method.toLowerCase() + words.replaceAll(/\W+(\w)?/g, (_, next: string = "") => next.toUpperCase());
}

function segmentsOf(path: string): object[] {
  return [...path.matchAll(/:(\w+)(?:\{([^}]*)\})?/g)].map(([, name, pattern]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string", ...(pattern !== undefined && { pattern: `^${pattern}$` }) },
  }));
}

function queryOf({ query = {} }: Endpoint): object[] {
  return Object.entries(query).map(([name, { schema, repeats = false, says }]) => ({
    name,
    in: "query",
    ...(says !== undefined && { description: says }),
    schema: repeats ? { type: "array", items: schema } : schema,
    ...(repeats && { style: "form", explode: true }),
  }));
}

function bodyOf({ members, mayBeEmpty = false, body }: Endpoint): object | undefined {
  if (body !== undefined) return { content: { [body]: {} }, required: !mayBeEmpty };
  if (members === undefined) return undefined;
  const entries = Object.entries(members);
  const schema = {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, member]) => [name, member.schema])),
    required: entries.filter(([, { isRequired = false }]) => isRequired).map(([name]) => name),
    additionalProperties: false,
  };
  return { content: { [JSON_TYPE]: { schema } }, required: !mayBeEmpty };
}

function responsesOf({ path, answers, refusals = [], members, body }: Endpoint): object {
  const responses: Record<number, Response> = {};
  const shape = errorShapeOf(path);
  for (const [status, codes] of refusalsByStatus(refusals, members !== undefined || body !== undefined)) {
    const schema = refusalSchema(shape, codes);
    responses[status] = { description: `Refused: ${codes.join(", ")}.`, content: { [JSON_TYPE]: { schema } } };
  }
  for (const [status, answer] of Object.entries(answers)) {
    const refusal = responses[Number(status)];
    responses[Number(status)] =
      refusal === undefined ? { description: answer.says, ...contentOf(answer) } : either(answer, refusal);
  }
  return responses;
}

function refusalSchema(shape: ErrorShape, codes: readonly ErrorCode[]): Schema {
  const code = { enum: shape === "openai" ? codes.map(openAiCode) : codes };
  const member = { properties: { code } };
  return {
    allOf: [{ $ref: `#/components/schemas/${shape}` }, shape === "openai" ? { properties: { error: member } } : member],
  };
}

/** A status that may be an answer or a refusal: the body has one shape or the other. */
function either(answer: Answer, refusal: Response): Response {
  const { content } = contentOf(answer);
  const schemas = [content?.[JSON_TYPE]?.schema, refusal.content?.[JSON_TYPE]?.schema];
  const description = `${answer.says} ${refusal.description}`;
  return { description, content: { ...content, [JSON_TYPE]: { schema: { anyOf: schemas.map((one) => one ?? {}) } } } };
}

function contentOf(answer: Answer): Pick<Response, "content"> {
  if ("mediaType" in answer) {
    return { content: Object.fromEntries([answer.mediaType].flat().map((type) => [type, {}])) };
  }
  if (!("shape" in answer)) return {};
  const { $schema: _, ...schema } = z.toJSONSchema(answer.shape()) as Schema;
  return { content: { [JSON_TYPE]: { schema } } };
}
