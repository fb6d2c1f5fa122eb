/** Why a request has failed, in the words of the gateway. */
import { parseJson } from "./json.js";

/** The gateway has refused the request. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Names the request in the gateway's log; undefined if the answer came from a proxy. */
    readonly requestId: string | undefined,
  ) {
    super(message);
  }
}

/** No answer came: the gateway is away, or the connection broke. */
export class Away extends Error {
  override readonly name = "Away";
}

/**
 * @param body of an answer with an error status: Baton's or OpenAI's form, or a proxy's text
 * @param requestId the header `x-request-id`
 */
export function refusalOf(status: number, body: string, requestId: string | null): Refusal {
  const { error, code } = membersOf(body);
  const inner = membersOf(error);
  const message = textOf(inner["message"]) ?? textOf(error) ?? `the answer had status ${status}`;
  return new Refusal(status, textOf(inner["code"]) ?? textOf(code) ?? "unknown", message, requestId ?? undefined);
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  const read = typeof value === "string" ? tryToParse(value) : value;
  return typeof read === "object" && read !== null ? (read as Record<string, unknown>) : {};
}

function tryToParse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
