/** One call of a model, with all that its answer needs beside the body, and without a transport. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { RequestBudget } from "../../admission/budget.js";
import type { Client, Inference } from "../../admission/inference.js";
import type { Limits } from "../limits.js";
import type { TensorPrinter } from "./tensor-printer.js";

export interface ModelCall {
  readonly tenant: string;
  /** Absent if the tenant and its key have no limits. */
  readonly budget?: RequestBudget | undefined;
  readonly model: ServedModel;
  /** The version that the client named, if it named one. */
  readonly version: string | undefined;
  /** Other versions that a step may be for, if its sequence began under one of them. */
  readonly others: readonly ServedModel[];
  readonly inference: Inference;
  readonly printer: TensorPrinter;
  readonly limits: Limits;
  readonly idempotencyKey: string | undefined;
  /** Whether the client fetches the outcome later. */
  readonly background: boolean;
  /** Makes a signal that aborts when the client has gone. A tensor model's answer needs none. */
  readonly gone: () => AbortSignal;
  /** For a tensor model; absent if the request runs to its end even if its client leaves. */
  readonly client?: Client | undefined;
}
