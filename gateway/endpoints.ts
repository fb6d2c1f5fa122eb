/**
 * Every declared endpoint of the HTTP API, in the order in which the router looks for a path, and
 * the service of each. The router, the document, the list and the test of all paths read this
 * table, so no path is in one of them and missing in another.
 */
import { addEndpoints } from "./api/endpoint/add-endpoints.js";
import type { AskedTerms } from "./api/endpoint/asked.js";
import { batchEndpoints } from "./api/batches.js";
import { deadEndpoints } from "./api/dead.js";
import { deliveryEndpoints } from "./api/deliveries.js";
import { documentEndpoints, type ApiDocument } from "./api/endpoint/document.js";
import type { Endpoint } from "./api/endpoint/endpoint.js";
import { fileEndpoints } from "./api/files.js";
import { fleetEndpoints } from "./api/fleet.js";
import { fleetEventEndpoints } from "./api/fleet-events.js";
import { jobEndpoints } from "./api/jobs.js";
import { keyEndpoints } from "./api/keys.js";
import { openApi } from "./api/endpoint/openapi.js";
import { openRequestEndpoints, requestEndpoints } from "./api/requests.js";
import { scheduleEndpoints } from "./api/schedules.js";
import { sequenceEndpoints } from "./api/sequences.js";
import { asyncApi, asyncApiEndpoints } from "./api/streams/asyncapi.js";
import { durableStreamEndpoints } from "./api/streams/durable-stream.js";
import { eventEndpoints } from "./api/streams/events.js";
import { webSocketEndpoints } from "./api/streams/websocket.js";
import { statisticsEndpoints } from "./api/statistics.js";
import { subscriptionEndpoints } from "./api/subscriptions.js";
import { settingsEndpoints } from "./api/settings.js";
import { tenantEndpoints } from "./api/tenants.js";
import { ticketEndpoints } from "./api/tickets.js";
import { usageEndpoints } from "./api/usage.js";
import { webhookEndpoints } from "./api/webhooks.js";
import { consoleEndpoints } from "./doors/console/endpoints.js";
import type { ConsoleFiles } from "./doors/console/files.js";
import { kserveEndpoints, type KserveParts } from "./doors/kserve-http/endpoints.js";
import { controlEndpoints } from "./doors/kserve-http/repository.js";
import { observingEndpoints, type ObservingParts } from "./doors/kserve-http/observing.js";
import { openAiEndpoints } from "./doors/openai/endpoints.js";
import type { Router } from "./http/router.js";
import type { KeyService } from "./service/keys.js";
import type { RepositoryService } from "./service/observing/repository.js";
import type { ProcessSettings } from "./service/process-settings.js";
import type { Services } from "./service/services.js";
import type { TenantService } from "./service/tenants.js";
import type { TicketService } from "./service/tickets.js";
import type { UsageService } from "./service/usage.js";

/** The parts that answer all paths. The app has no paths for a service that is absent. */
export interface AppParts
  extends
    KserveParts,
    Partial<Omit<Services, "fleet" | "inference">>,
    Partial<AdministrationServices>,
    Partial<ObservingServices> {
  /** Absent if the gateway serves no console. */
  readonly console?: ConsoleFiles | undefined;
}

/** Only a gateway has them, because they need the secret of its keys. */
export interface AdministrationServices {
  readonly keys: KeyService;
  readonly tenants: TenantService;
  readonly tickets: TicketService;
  readonly usage: UsageService;
  readonly settings: ProcessSettings;
}

/** Only a gateway has them, because operators ask for them over its paths alone. */
export interface ObservingServices extends Omit<ObservingParts, "fleet"> {
  readonly repository: RepositoryService;
}

/** Endpoints that call the same service. */
export interface Group {
  /** Under which docs/api.md shows them. */
  readonly noun: string;
  readonly endpoints: readonly Endpoint[];
  /** Adds the endpoints to the router, if the app has their service. */
  addTo(router: Router, parts: AppParts, terms: Omit<AskedTerms, "onBug">): void;
}

function group<S>(
  noun: string,
  endpoints: readonly Endpoint<S>[],
  serviceOf: (parts: AppParts) => S | undefined,
): Group {
  return {
    noun,
    endpoints,
    addTo(router, parts, terms) {
      const service = serviceOf(parts);
      if (service !== undefined) addEndpoints(router, endpoints, service, terms);
    },
  };
}

/** Groups of the same noun stand side by side. */
export const groups: readonly Group[] = [
  group("Triton's paths", statisticsEndpoints, ({ statistics }) => statistics),
  group("Triton's paths", kserveEndpoints, (parts) => parts),
  group("Triton's paths", controlEndpoints, ({ repository }) => repository),
  group(
    "Triton's paths",
    observingEndpoints,
    ({ fleet, traces, logging }) => traces && logging && { fleet, traces, logging },
  ),
  group("Fleet", fleetEndpoints, ({ fleet }) => fleet),
  group("Fleet", fleetEventEndpoints, ({ fleetEvents }) => fleetEvents),
  group("Fleet", settingsEndpoints, ({ settings }) => settings),
  group(
    "Requests and their streams",
    [...requestEndpoints, ...openRequestEndpoints, ...eventEndpoints, ...webSocketEndpoints, ...durableStreamEndpoints],
    ({ requests }) => requests,
  ),
  group("Subscriptions", subscriptionEndpoints, ({ subscriptions }) => subscriptions),
  group("Documents", asyncApiEndpoints, ({ version }) => ({ text: JSON.stringify(asyncApi(version)) })),
  group("Documents", documentEndpoints, ({ version }) => documentOf(version)),
  group("Sequences", sequenceEndpoints, ({ sequences }) => sequences),
  group("Jobs", jobEndpoints, ({ jobs, printer }) => jobs && { jobs, printer }),
  group("Requests that were set aside", deadEndpoints, ({ dead }) => dead),
  group("Schedules", scheduleEndpoints, ({ schedules }) => schedules),
  group("Webhooks", webhookEndpoints, ({ webhooks }) => webhooks),
  group("Deliveries", deliveryEndpoints, ({ deliveries }) => deliveries),
  group("Batches", batchEndpoints, ({ batches }) => batches),
  group("Files", fileEndpoints, ({ files }) => files),
  group("Keys", keyEndpoints, ({ keys }) => keys),
  group("Tickets", ticketEndpoints, ({ tickets }) => tickets),
  group("Tenants", tenantEndpoints, ({ tenants }) => tenants),
  group("Usage", usageEndpoints, ({ usage }) => usage),
  group("OpenAI's paths", openAiEndpoints, (parts) => parts),
  group("Console", consoleEndpoints, (parts) => parts.console),
];

export const endpoints: readonly Endpoint[] = groups.flatMap((one) => one.endpoints);

/** Makes the document at its first request. */
function documentOf(version: string): ApiDocument {
  let text: string | undefined;
  return {
    get text() {
      text ??= JSON.stringify(openApi(endpoints, version));
      return text;
    },
  };
}
