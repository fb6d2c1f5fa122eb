/** A way into a gateway, which makes one attempt at a request at a time. */
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { Random } from "../fleet/random.js";
import type { Ending } from "./ask.js";
import type { Call } from "./call.js";

export interface Door {
  /**
   * Makes an attempt. Never rejects: an attempt without an outcome ends unknown.
   * @param gateway the address of a gateway for this door
   * @param heard the parts of the answer that earlier attempts have brought; the attempt asks for
   * the parts behind these, and adds them
   */
  attempt(gateway: string, call: Call, heard: Part[]): Promise<Attempt>;
  close(): void;
}

/** A part of an answer that comes in several. */
export interface Part {
  readonly index: number;
  readonly output: string;
}

export interface Attempt {
  readonly ending: Ending;
  /** When the server asks the client to come again, in ms from now. */
  readonly hintMs?: number | undefined;
}

export interface DoorTerms {
  /** The longest wait for a sign of the answer. */
  readonly attemptMs: number;
  /** The name of the header for the tenant. If undefined, the client sends no tenant. */
  readonly tenantHeader: string | undefined;
  /** The share of occasions at which a client of gRPC leaves in the middle of an attempt. */
  readonly leaves: number;
  readonly random: Random;
  /** Called for an answer to a request that has had its whole answer, or that nobody sent. */
  readonly onStray: (request: string) => void;
}

/** Only a refusal that says "later" leaves the request open. Every other error is an outcome. */
export function failure(code: string, status = isErrorCode(code) ? errorKinds[code].status : 0): Ending {
  const later = isErrorCode(code) && errorKinds[code].retry && (status === 503 || status === 429);
  return later ? { kind: "unknown", why: `${status} ${code}`, refusal: code } : { kind: "fail", status, code };
}

/** The answer in one text. An answer of several parts shows the index of each. */
export function joined(parts: readonly Part[]): string {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only.output;
  return parts.map(({ index, output }) => `${index}:${output}`).join("|");
}

export function tenantHeader({ tenantHeader: name }: DoorTerms, { tenant }: Call): Record<string, string> {
  return name === undefined || tenant === undefined ? {} : { [name]: tenant };
}
