/**
 * The types of answers, from their declared shapes. The command line and the console read answers
 * by these types. This file has no code, so that neither loads anything of a gateway.
 */
import type { z } from "zod";
import type { batchShape } from "./api/batches.js";
import type { deadShape } from "./api/dead.js";
import type { deliveryShape } from "./api/deliveries.js";
import type { fleetShape, historyShape, ownFleetShape } from "./api/fleet.js";
import type { jobShape } from "./api/jobs.js";
import type { keyShape, newKeyShape } from "./api/keys.js";
import type { pageShape } from "./api/endpoint/page.js";
import type { openRequestsShape, statusShape } from "./api/requests.js";
import type { scheduleShape } from "./api/schedules.js";
import type { settingsShape } from "./api/settings.js";
import type { sequenceShape, sequencesShape } from "./api/sequences.js";
import type { webhookShape } from "./api/webhooks.js";
import type { modelMetadataShape, repositoryShape } from "./doors/kserve-http/endpoints.js";

type Of<Shape extends () => z.ZodType> = z.infer<ReturnType<Shape>>;

export type Batch = Of<typeof batchShape>;
export type DeadRequest = Of<typeof deadShape>;
export type Delivery = Of<typeof deliveryShape>;
export type Fleet = Of<typeof fleetShape>;
export type History = Of<typeof historyShape>;
export type OwnFleet = Of<typeof ownFleetShape>;
export type Job = Of<typeof jobShape>;
export type ApiKey = Of<typeof keyShape>;
export type NewApiKey = Of<typeof newKeyShape>;
export type ModelMetadata = Of<typeof modelMetadataShape>;
export type OpenRequests = Of<typeof openRequestsShape>;
export type Repository = Of<typeof repositoryShape>;
export type RequestStatus = Of<typeof statusShape>;
export type Schedule = Of<typeof scheduleShape>;
export type Sequence = Of<typeof sequenceShape>;
export type Sequences = Of<typeof sequencesShape>;
export type Settings = Of<typeof settingsShape>;
export type Webhook = Of<typeof webhookShape>;

export type Page<Item> = Omit<z.infer<ReturnType<typeof pageShape>>, "data"> & { readonly data: readonly Item[] };
