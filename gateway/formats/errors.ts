/**
 * The one place that turns a refusal or a failure into a reply. A body has the shape of its
 * protocol, no matter whether a route refuses, the rules for browsers or the HTTP server itself.
 */
import {
  errorKinds,
  fixedError,
  InferenceError,
  shortened,
  type ErrorCode,
  type Limited,
  type RefusalReason,
} from "#shared/errors.js";
import { InsufficientScope } from "../auth/owner/scopes.js";
import type { Reply } from "./reply.js";

/** All paths but OpenAI's answer in the shape `kserve`. */
export type ErrorShape = "kserve" | "openai";

/** Picks the shape for a path. */
export function errorShapeOf(path: string): ErrorShape {
  return path.startsWith("/v1/") ? "openai" : "kserve";
}

/**
 * Whether the error is a refusal. Any other error is a bug, and the client learns nothing about it.
 */
export function isRefusal(error: unknown): error is InferenceError {
  return error instanceof InferenceError;
}

/**
 * Makes the reply to a request that failed.
 * @param status replaces the status of the error's code
 */
export function errorReply(error: unknown, shape: ErrorShape = "kserve", status?: number): Reply {
  const { status: usual, retry } = errorKinds[clientError(error).code];
  const headers: Record<string, string> = { "content-type": "application/json" };
  const { waitMs = retry ? USUAL_WAIT_MS : undefined } = (isRefusal(error) ? error.limited : undefined) ?? {};
  if (waitMs !== undefined) {
    headers["retry-after"] = String(Math.max(1, Math.ceil(waitMs / 1_000)));
    if ((status ?? usual) === 429) headers["retry-after-ms"] = String(waitMs);
  }
  // OpenAI's clients repeat a 429 unless the reply says otherwise.
  if (clientError(error).code === "insufficient_quota") headers["x-should-retry"] = "false";
  // Browsers cache a 410 for ever, and its resource may come back: a job runs again.
  if ((status ?? usual) === 410) headers["cache-control"] = "no-store";
  const challenge = challengeOf(error);
  if (challenge !== undefined) headers["www-authenticate"] = challenge;
  if (error instanceof UnsupportedEncoding) headers["accept-encoding"] = UnsupportedEncoding.supported;
  return { status: status ?? usual, headers, body: [errorBody(error, shape)], code: clientError(error).code };
}

/** When to try again if nothing says when it helps, in ms. */
const USUAL_WAIT_MS = 1_000;

/** The challenge of a refused credential (RFC 6750, section 3). */
function challengeOf(error: unknown): string | undefined {
  const realm = 'Bearer realm="baton"';
  if (error instanceof InsufficientScope) return `${realm}, error="insufficient_scope", scope="${error.scope}"`;
  const { code } = clientError(error);
  if (code === "insufficient_scope") return `${realm}, error="insufficient_scope"`;
  if (errorKinds[code].status !== 401) return undefined;
  return code === "missing_api_key" ? realm : `${realm}, error="invalid_token"`;
}

/** Writes the body of a reply, or the data of an event if the reply has begun. */
export function errorBody(error: unknown, shape: ErrorShape = "kserve"): string {
  const told = clientError(error);
  return shape === "openai" ? openAiBody(told) : kserveBody(told);
}

/** Refuses a method without a handler on this path. */
export function methodNotAllowed(method: string, path: string): InferenceError {
  if (errorShapeOf(path) === "kserve") return fixedError("method_not_allowed", "usual");
  return new InferenceError("method_not_allowed", `Not allowed to ${method} on ${path}`);
}

/** Refuses the Content-Encoding of a body. The reply names the supported encodings. */
export class UnsupportedEncoding extends InferenceError {
  static readonly supported = "gzip, deflate";

  constructor() {
    super("unsupported", errorKinds.unsupported.texts.compression);
  }
}

interface ClientError {
  readonly code: ErrorCode;
  readonly message: string;
  /** Why a step was refused. */
  readonly reason?: RefusalReason | undefined;
  readonly limited?: Limited | undefined;
  /** The parameter that caused the error, if the error names one. */
  readonly parameter?: string | undefined;
}

function clientError(error: unknown): ClientError {
  return isRefusal(error) ? error : fixedError("internal", "usual");
}

function kserveBody({ code, message, reason, limited }: ClientError): string {
  const { limit, scope } = limited ?? {};
  return JSON.stringify({ error: shortened(message, maxTextLength), code, reason, limit, scope });
}

/** OpenAI's clients read a type that says whether the client or the server is at fault. */
function openAiBody({ code, message, parameter, limited }: ClientError): string {
  return JSON.stringify({
    error: {
      message: shortened(message, maxTextLength),
      type: openAiType(code, limited),
      param: parameter ?? null,
      code: openAiCode(code),
    },
  });
}

/** Baton's code, except for an unknown model, for which OpenAI's clients expect OpenAI's code. */
export function openAiCode(code: ErrorCode): string {
  return code === "unknown_model" ? "model_not_found" : code;
}

function openAiType(code: ErrorCode, limited: Limited | undefined): string {
  const isForbidden = code === "insufficient_scope" || code === "tenant_suspended" || code === "restricted_api";
  if (isForbidden) return "permission_error";
  if (code === "insufficient_quota") return code;
  if (limited?.limit === "tokens_per_minute") return "tokens";
  if (code === "rate_limit_exceeded" || code === "stream_limit") return "requests";
  const { status } = errorKinds[code];
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/** Longest text of an error, in characters. */
const maxTextLength = 4096;
