/** `/v2/requests/<id>/events`: the records of a request as server-sent events. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { notedPages } from "../../facts/request-facts.js";
import { errorBody } from "../../formats/errors.js";
import { emptyReply, withHeaders } from "../../formats/reply.js";
import { factsOf } from "../../facts/answer-facts.js";
import { countReader } from "../../http/opened.js";
import { openSse } from "../../http/sse.js";
import type { RequestService } from "../../service/requests.js";
import { countResume } from "../../stream/counts.js";
import type { Cursor } from "../../stream/cursor.js";
import type { RelaySpan } from "../../trace/relay-span.js";
import { endpointsOf } from "../endpoint/endpoint.js";
import { ticketParameter, type Parameter } from "../endpoint/parameters.js";

const endpoint = endpointsOf<RequestService>("inference");

/** Reads the index of the first record to send. */
const after: Parameter<number> = {
  schema: { type: "integer", minimum: 0, maximum: 999_999_999 },
  says: "The index of the last record that the client has.",
  read: ([given], name) => (given === undefined ? 0 : indexAfter(given, name)),
};
/** The client's position in the paths of events and WebSockets. */
export const positionQuery = { after, ticket: ticketParameter };

export const eventEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/requests/:id/events",
    right: "read",
    does: "Sends the records of a request as server-sent events, from the client's position on.",
    opensByTicketFor: "id",
    query: positionQuery,
    ignoresOthers: true,
    answers: { 200: { says: "An event for each record.", mediaType: "text/event-stream" } },
    refusals: ["unknown_request", "ahead_of_log", "resume_window_passed", "stream_limit"],
    async handle(asked, requests) {
      const { caller, query, incoming, outgoing } = asked;
      const id = asked.segment("id");
      const isHead = incoming.method === "HEAD";
      const first = firstIndex(query.after, incoming.headers);
      if (!isHead) countReader(outgoing);
      const cursor = await requests.open(caller, id, first);
      if (isHead) return withHeaders(emptyReply, { "content-type": "text/event-stream" });
      countResume(first);
      const span = await asked.readerSpan(requests, id, first);
      sendEvents(outgoing, id, cursor, span).catch((error: unknown) => asked.onBug(error));
      return undefined;
    },
  }),
];

/**
 * Resolves when the stream has ended or the client has disconnected. Sends an InferenceError to the
 * client as an event.
 * @throws every other error; the client reads only "internal error"
 */
async function sendEvents(
  outgoing: ServerResponse,
  id: string,
  cursor: Cursor,
  span: RelaySpan | undefined,
): Promise<void> {
  const sse = openSse(outgoing, { requestId: id, resumable: true });
  try {
    const pages = cursor.pages(sse.signal);
    for await (const page of notedPages(span?.follow(pages) ?? pages, factsOf(outgoing.req))) {
      for (const { index, json } of page) {
        if (!sse.add({ id: index, data: json }) && !(await sse.room())) return;
      }
    }
  } catch (error) {
    // This event is no record, so it has no id: a client that comes back continues after its last
    // record.
    await sse.send({ event: "error", data: errorBody(error) });
    if (!(error instanceof InferenceError)) throw error;
  } finally {
    sse.end();
  }
}

/**
 * @param inQuery the index by the query
 * @returns the index of the first record to send: by the header `Last-Event-ID`, or by the query
 * @throws InferenceError `invalid_argument`
 */
export function firstIndex(inQuery: number, { "last-event-id": last }: IncomingHttpHeaders): number {
  // A browser that reconnects repeats the URL, so the header is newer and wins.
  return last === undefined ? inQuery : indexAfter(String(last), "Last-Event-ID");
}

function indexAfter(value: string, name: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value) + 1;
  throw new InferenceError("invalid_argument", `${name} must be the index of a record, from 0 to 999999999`);
}
