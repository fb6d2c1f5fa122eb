/**
 * Why a request failed: the gateway was unreachable, the connection broke, or the gateway refused.
 */
import { errorKinds, isErrorCode } from "#shared/errors.js";
import { exitCodes, exitOfStatus, Failure } from "../terminal/exit.js";

/** No answer arrived, or only a part. */
export class Unreached extends Failure {
  /** Whether the connection was open, so that the gateway may have received the request. */
  readonly begun: boolean;

  constructor(message: string, begun: boolean, options?: ErrorOptions) {
    super(exitCodes.unreachable, message, options);
    this.begun = begun;
  }
}

export class Refused extends Failure {
  readonly status: number;

  constructor(status: number, message: string) {
    super(exitOfStatus(status), message);
    this.status = status;
  }
}

/** Meaning of Node's error codes for a connection that was never open. */
const NEVER_CONNECTED: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "its name cannot be looked up now",
  EHOSTUNREACH: "there is no way to that host",
  ENETUNREACH: "there is no way to that network",
  ETIMEDOUT: "it does not answer",
  UND_ERR_CONNECT_TIMEOUT: "it does not answer",
};

/** @param error from `fetch` or from reading the answer */
export function unreached(error: unknown, url: string): Unreached {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = codeOf(cause);
  const known = NEVER_CONNECTED[code];
  if (known !== undefined) return new Unreached(`cannot reach ${url}: ${known} (${code})`, false, { cause });
  if (/^(CERT_|ERR_TLS_CERT|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)/.test(code)) {
    return new Unreached(`cannot reach ${url}: its certificate is not trusted (${code})`, false, { cause });
  }
  if (/^(ERR_TLS|ERR_SSL|EPROTO$)/.test(code)) {
    return new Unreached(`cannot reach ${url}: TLS with it fails; does it speak https? (${code})`, false, { cause });
  }
  const why = cause instanceof Error ? cause.message : String(cause);
  if (why === "bad port") {
    // The Fetch standard, section 2.9, lists the ports of other protocols.
    return new Unreached(`cannot reach ${url}: HTTP is not spoken at that port (${why})`, false, { cause });
  }
  return new Unreached(`the connection to ${url} broke: ${why}`, true, { cause });
}

/** If a host has several addresses, Node throws an AggregateError with an error for each. */
function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors[0]);
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "";
}

/**
 * Reads the error in an answer, in the shape of each protocol.
 * @param body the answer's body, which may be a proxy's page
 */
export function refusal(status: number, body: string): Refused {
  const { message, code } = said(body);
  if (message === undefined) return new Refused(status, `the answer had status ${status}`);
  return new Refused(status, code === undefined ? message : `${message} (${code})`);
}

/**
 * Reads the error in an event of a stream. The stream's status is 200, so the error's code gives
 * the status.
 * @param data of the event
 */
export function refusalInStream(data: string): Refused {
  return refusal(statusOf(said(data).code), data);
}

/** The HTTP status of an error code; 500 for an unknown code. */
export function statusOf(code: string | undefined): number {
  return code !== undefined && isErrorCode(code) ? errorKinds[code].status : 500;
}

function said(body: string): { readonly message?: string; readonly code?: string } {
  const { error, code } = members(parsed(body));
  if (typeof error === "string") return { message: error, ...(typeof code === "string" && { code }) };
  const inner = members(error);
  if (typeof inner["message"] !== "string") return {};
  return { message: inner["message"], ...(typeof inner["code"] === "string" && { code: inner["code"] }) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function members(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
