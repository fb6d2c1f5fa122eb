/** `/v2/fleet/events`: what happens in the fleet, as server-sent events. */
import type { ServerResponse } from "node:http";
import type { FleetEvent, FleetEvents } from "../fleet/events.js";
import { emptyReply, withHeaders } from "../formats/reply.js";
import { countReader } from "../http/opened.js";
import { openSse } from "../http/sse.js";
import { endpointsOf } from "./endpoint/endpoint.js";

const endpoint = endpointsOf<FleetEvents>("model-repository");

export const fleetEventEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/fleet/events",
    right: "operator",
    isTenantOptional: true,
    does: "Sends the fleet as it is, and then what happens in it; `Last-Event-ID` brings what a reader has missed.",
    answers: { 200: { says: "An event for each change.", mediaType: "text/event-stream" } },
    refusals: ["unavailable", "stream_limit"],
    async handle(asked, events) {
      const { incoming, outgoing } = asked;
      if (incoming.method === "HEAD") return withHeaders(emptyReply, { "content-type": "text/event-stream" });
      countReader(outgoing);
      const { "last-event-id": after } = incoming.headers;
      const follow = await events.open(Array.isArray(after) ? after[0] : after);
      send(outgoing, follow).catch((error: unknown) => asked.onBug(error));
      return undefined;
    },
  }),
];

async function send(
  outgoing: ServerResponse,
  follow: (signal: AbortSignal) => AsyncIterable<readonly FleetEvent[]>,
): Promise<void> {
  const sse = openSse(outgoing, { resumable: true });
  try {
    for await (const page of follow(sse.signal)) {
      for (const event of page) if (!sse.add(event) && !(await sse.room())) return;
    }
  } finally {
    sse.end();
  }
}
