/** Every declared endpoint of the HTTP API, by its noun. */
import { batchEndpoints } from "./api/batches.js";
import { deadEndpoints } from "./api/dead.js";
import { deliveryEndpoints } from "./api/deliveries.js";
import { documentEndpoints } from "./api/document.js";
import type { Endpoint } from "./api/endpoint.js";
import { fileEndpoints } from "./api/files.js";
import { fleetEndpoints } from "./api/fleet.js";
import { jobEndpoints } from "./api/jobs.js";
import { requestEndpoints } from "./api/requests.js";
import { scheduleEndpoints } from "./api/schedules.js";
import { sequenceEndpoints } from "./api/sequences.js";
import { asyncApiEndpoints } from "./api/streams/asyncapi.js";
import { durableStreamEndpoints } from "./api/streams/durable-stream.js";
import { eventEndpoints } from "./api/streams/events.js";
import { webSocketEndpoints } from "./api/streams/websocket.js";
import { subscriptionEndpoints } from "./api/subscriptions.js";
import { webhookEndpoints } from "./api/webhooks.js";
import { kserveEndpoints } from "./doors/kserve-http/endpoints.js";
import { openAiEndpoints } from "./doors/openai/endpoints.js";

/** The endpoints on requests by their public id, all of the same service. */
export const ofRequests = [...requestEndpoints, ...eventEndpoints, ...webSocketEndpoints, ...durableStreamEndpoints];

/**
 * The endpoints of each noun, as docs/api.md shows the nouns. The router looks for a path in this
 * order.
 */
export const nouns: Readonly<Record<string, readonly Endpoint[]>> = {
  "Triton's paths": kserveEndpoints,
  Fleet: fleetEndpoints,
  "Requests and their streams": ofRequests,
  Subscriptions: subscriptionEndpoints,
  Documents: [...asyncApiEndpoints, ...documentEndpoints],
  Sequences: sequenceEndpoints,
  Jobs: jobEndpoints,
  "Requests that were set aside": deadEndpoints,
  Schedules: scheduleEndpoints,
  Webhooks: webhookEndpoints,
  Deliveries: deliveryEndpoints,
  Batches: batchEndpoints,
  Files: fileEndpoints,
  "OpenAI's paths": openAiEndpoints,
};

export const endpoints: readonly Endpoint[] = Object.values(nouns).flat();
