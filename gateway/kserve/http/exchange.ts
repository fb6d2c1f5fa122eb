/** One HTTP request to a model, with all that its handler needs for the answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Inference } from "../../admission/inference.js";
import type { Bodies } from "../../http/bodies.js";
import type { Limits } from "../../http/limits.js";
import type { RequestReader } from "./request-reader.js";
import type { TensorPrinter } from "./tensor-printer.js";

export interface ModelExchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly tenant: string;
  readonly model: ServedModel;
  /** The version that the client named, if it named one. */
  readonly version: string | undefined;
  /** Other versions that a step may be for, if its sequence began under one of them. */
  readonly others: readonly ServedModel[];
  readonly inference: Inference;
  readonly bodies: Bodies;
  readonly reader: RequestReader;
  readonly printer: TensorPrinter;
  readonly limits: Limits;
}
