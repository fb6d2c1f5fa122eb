/** One HTTP request to a model, and what it may be answered with. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Generate, Infer } from "../inference.js";
import type { Limits } from "./limits.js";

export interface ModelExchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly model: ServedModel;
  readonly infer: Infer;
  readonly generate: Generate;
  readonly limits: Limits;
}
