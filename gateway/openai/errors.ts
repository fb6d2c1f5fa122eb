/** Refusals as OpenAI's clients read them: a type that says whose fault it is, and Baton's own code where OpenAI has none. */
import { errorKinds, type InferenceError } from "#shared/errors.js";
import { ParameterFault } from "../generation/fault.js";
import { shortened, UnsupportedEncoding, type Reply } from "../v2/reply.js";

export function errorBody(error: InferenceError): string {
  return JSON.stringify({
    error: {
      message: shortened(error.message),
      type: typeOf(errorKinds[error.code].status),
      param: error instanceof ParameterFault ? error.parameter : null,
      code: error.code === "unknown_model" ? "model_not_found" : error.code,
    },
  });
}

function typeOf(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

export function openAiRefusal(error: InferenceError): Reply {
  const { status, retry } = errorKinds[error.code];
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (retry) headers["retry-after"] = "1";
  if (error instanceof UnsupportedEncoding) headers["accept-encoding"] = UnsupportedEncoding.supported;
  return { status, headers, body: [errorBody(error)] };
}
