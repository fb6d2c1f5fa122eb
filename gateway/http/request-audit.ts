/** Notes refused requests in the audit. */
import type { IncomingMessage } from "node:http";
import { errorKinds, type ErrorCode, type InferenceError } from "#shared/errors.js";
import { cells } from "#shared/metrics/cells.js";
import { AuthFailure } from "../auth/owner/auth-failure.js";
import type { Audit, AuditDetails, AuditEvent } from "../auth/audit.js";
import type { Owner } from "../auth/owner/owner.js";
import { InsufficientScope } from "../auth/owner/scopes.js";
import type { Verdict } from "#shared/listening/browsers.js";
import type { Peers } from "./peers.js";
import { pathOf } from "./router.js";

/** The parts of a request that the audit names. */
export type AuditedRequest = Pick<IncomingMessage, "method" | "url"> & Parameters<Peers["addressOf"]>[0];

export class RequestAudit {
  readonly #audit: Audit;
  readonly #peers: Peers;

  constructor(audit: Audit, peers: Peers) {
    this.#audit = audit;
    this.#peers = peers;
  }

  /** Notes the refusal of a key or of a right; other errors are none of the audit's. */
  refused(error: unknown, incoming: AuditedRequest, requestId?: string): void {
    if (error instanceof AuthFailure) {
      cells.add(cells.counter("baton_auth_failures_total", { reason: error.why }));
      const key = { key_id: error.key?.id, tenant: error.key?.tenant };
      this.#note("auth_failed", error.code, incoming, { reason: error.why, ...key, request_id: requestId });
    } else if (error instanceof InsufficientScope) {
      const { scope, by } = error;
      const key = { key_id: by?.keyId, tenant: by?.tenant };
      this.#note("scope_refused", error.code, incoming, { reason: scope, scope, ...key, request_id: requestId });
    }
  }

  /** Notes that a limit of the owner has refused the request. */
  limited({ keyId, tenant }: Owner, { code, limited }: InferenceError, incoming?: AuditedRequest): void {
    if (limited === undefined) return;
    const { limit, scope } = limited;
    const details = { reason: limit, limit, scope, key_id: keyId, tenant };
    const event = code === "insufficient_quota" ? "quota_exhausted" : "rate_limited";
    if (incoming !== undefined) this.#note(event, code, incoming, details);
    else this.#audit.note(event, { ...details, status: errorKinds[code].status });
  }

  acted({ keyId }: Owner, tenant: string): void {
    this.#audit.note("acted_for", { tenant, key_id: keyId, actor: keyId });
  }

  /** Notes a page that the rules for browsers refuse. */
  pageRefused({ event, text }: Extract<Verdict, { said: "refused" }>, incoming: AuditedRequest): void {
    this.#note(event, "forbidden", incoming, { reason: text });
  }

  /** Notes a wrong token of the operators' board. */
  boardRefused(incoming: AuditedRequest): void {
    this.#note("board_failed", "invalid_api_key", incoming, {});
  }

  #note(event: AuditEvent, code: ErrorCode, incoming: AuditedRequest, details: AuditDetails): void {
    const { method, url = "" } = incoming;
    const path = pathOf(url);
    const address = this.#peers.addressOf(incoming);
    this.#audit.note(event, { ...details, method, path, status: errorKinds[code].status, address });
  }
}
