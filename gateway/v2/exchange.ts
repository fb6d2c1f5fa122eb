/** One HTTP request to a model, and what it may be answered with. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Generate, Infer, InferLater } from "../inference.js";
import type { Bodies } from "./bodies.js";
import type { Limits } from "./limits.js";

export interface ModelExchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly model: ServedModel;
  readonly infer: Infer;
  readonly inferLater: InferLater;
  readonly generate: Generate;
  readonly bodies: Bodies;
  readonly limits: Limits;
}
