/** `/v2/tickets`: reading a request without a key, for pages in browsers. */
import { z } from "zod";
import { secretReply } from "../formats/reply.js";
import type { TicketService } from "../service/tickets.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { lifetime, needed, string, type Lifetime } from "./endpoint/members.js";

const endpoint = endpointsOf<TicketService>("none");

const TTL_MS: Lifetime = { usual: 30_000, least: 1_000, most: 60_000 };

const ticketShape = () =>
  z.strictObject({ object: z.literal("ticket"), ticket: z.string(), request: z.string(), expires_at: z.string() });

export const ticketEndpoints = [
  endpoint({
    method: "POST",
    path: "/v2/tickets",
    right: "read",
    does: "Gives a ticket, with which a page in a browser reads the status and the stream of a request.",
    members: { request: needed(string), ttl: lifetime(TTL_MS, "how long the ticket is good, in ms") },
    answers: { 201: { says: "The ticket.", shape: ticketShape } },
    refusals: ["unknown_request", "unsupported"],
    async handle(asked, tickets) {
      const { request, ttl = TTL_MS.usual } = await asked.members();
      return secretReply(await tickets.make(asked.caller, request, ttl), 201);
    },
  }),
];
