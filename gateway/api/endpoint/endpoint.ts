/**
 * An endpoint of the HTTP API, declared: the router, the test of all paths and the document of the
 * API read the same declaration. A handler calls a service and says how the value is answered.
 */
import type { z } from "zod";
import type { ErrorCode } from "#shared/errors.js";
import type { Api } from "../../auth/restricted-apis.js";
import type { Scope } from "../../auth/owner/scopes.js";
import type { OpenGroup } from "#shared/listening/settings.js";
import type { Reply } from "../../formats/reply.js";
import type { Asked } from "./asked.js";
import type { Members } from "./members.js";
import type { Parameters } from "./parameters.js";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The body of an answer: JSON of a shape, bytes or events of a media type, or nothing. */
export type Answer =
  | { readonly says: string; readonly shape: () => z.ZodType }
  | { readonly says: string; readonly mediaType: string | readonly string[] }
  | { readonly says: string };

export interface Declared<S, P extends Parameters, M extends Members> {
  readonly method: Method;
  /** A segment `:name` is chosen by the client. */
  readonly path: string;
  /**
   * What a caller must be allowed to do. Undefined if the answer is the same for every tenant: then
   * the gateway reads no tenant, and a key needs `otherRight`. `any`: a key needs no scope.
   */
  readonly right?: Scope | "any";
  /** What a key must allow on a path whose answer is the same for every tenant; absent: `read`. */
  readonly otherRight?: Scope;
  /**
   * The group of paths that a deployment may open to requests without a key. `always`: every
   * deployment, because the answer holds no data. Absent if the path is never open.
   */
  readonly open?: OpenGroup | "always";
  /**
   * Whether a call admits a request, which counts in the rates of its owner; absent: if the right
   * is `infer`. Every other call counts among the calls of its key.
   */
  readonly admits?: boolean;
  /**
   * The segment with the id of a request. A ticket for this request opens the path; absent if no
   * ticket opens the path.
   */
  readonly opensByTicketFor?: string;
  /** Whether a caller without a valid tenant may ask, too. Then `caller.tenant` is empty. */
  readonly isTenantOptional?: boolean;
  /** What the endpoint does, in one sentence. */
  readonly does: string;
  /** Absent if the endpoint reads no query; then it ignores a query. */
  readonly query?: P;
  /**
   * Whether the endpoint ignores parameters that `query` does not name. If a parameter comes more
   * than once, such an endpoint takes the first value.
   */
  readonly ignoresOthers?: boolean;
  /** The members of a JSON object. */
  readonly members?: M;
  /** Whether no body counts as an empty object. */
  readonly mayBeEmpty?: boolean;
  /** The media type of a body that the endpoint reads by itself. */
  readonly body?: string;
  /**
   * Whether the path is for WebSockets, which another part answers. `handle` refuses every other
   * request, and nothing reads that request's tenant and query.
   */
  readonly isWebSocket?: boolean;
  /** Headers of every answer of `handle`, refusals included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** By status. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** The codes of its refusals, beside those that every endpoint may answer (`refusals.ts`). */
  readonly refusals?: readonly ErrorCode[];
  /** @returns undefined if the handler has written the answer itself */
  handle(asked: Asked<P, M>, service: S): Reply | undefined | Promise<Reply | undefined>;
}

/** An endpoint whose handler calls the service `S`. */
export interface Endpoint<S = never> extends Declared<S, Parameters, Members> {
  /** The API of Triton that the endpoint is a part of, which an operator may restrict. */
  readonly api: Api;
}

/**
 * Declares the endpoints of a service, with the types of each query and body.
 * @param api Baton's own paths are part of the API of Triton that does the same
 */
export function endpointsOf<S>(api: Api) {
  return <const P extends Parameters, const M extends Members>(declared: Declared<S, P, M>): Endpoint<S> => ({
    ...declared,
    api,
  });
}
