/** Every declared endpoint of the HTTP API, in the order in which the router looks for a path. */
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

export const endpoints: readonly Endpoint[] = [
  ...kserveEndpoints,
  ...fleetEndpoints,
  ...ofRequests,
  ...subscriptionEndpoints,
  ...asyncApiEndpoints,
  ...documentEndpoints,
  ...sequenceEndpoints,
  ...jobEndpoints,
  ...deadEndpoints,
  ...scheduleEndpoints,
  ...webhookEndpoints,
  ...deliveryEndpoints,
  ...batchEndpoints,
  ...fileEndpoints,
  ...openAiEndpoints,
];
