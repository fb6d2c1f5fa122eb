/** Gives tickets, with which pages in browsers read a request. */
import { fixedError } from "#shared/errors.js";
import type { Audit } from "../auth/audit.js";
import type { Tickets } from "../auth/tickets.js";
import type { Caller } from "./caller.js";
import type { RequestService } from "./requests.js";

export interface TicketServiceSettings {
  readonly tickets: Pick<Tickets, "write">;
  /** Redis ms, by which tickets expire. */
  readonly now: () => number;
  readonly requests: Pick<RequestService, "status">;
  readonly audit: Audit;
}

/** The body of the answer. */
export interface TicketView {
  readonly object: "ticket";
  readonly ticket: string;
  readonly request: string;
  readonly expires_at: string;
}

export class TicketService {
  readonly #settings: TicketServiceSettings | undefined;

  /** @param settings undefined if the deployment asks for no keys */
  constructor(settings: TicketServiceSettings | undefined) {
    this.#settings = settings;
  }

  /**
   * @param request the public id of a request of the caller's tenant
   * @param ttlMs how long the ticket opens streams of the request; an open stream goes on
   * @throws InferenceError `unknown_request`, `unsupported` or `unavailable`
   */
  async make(caller: Caller, request: string, ttlMs: number): Promise<TicketView> {
    const { tenant, keyId, expiresAt: keyEnds } = caller;
    if (this.#settings === undefined || keyId === undefined) throw fixedError("unsupported", "noTickets");
    const { tickets, now, requests, audit } = this.#settings;
    await requests.status(caller, request);
    const expiresAt = now() + ttlMs;
    audit.note("ticket_issued", { tenant, key_id: keyId });
    const ticket = tickets.write({ keyId, tenant, request, expiresAt, keyEnds });
    return { object: "ticket", ticket, request, expires_at: new Date(expiresAt).toISOString() };
  }
}
