/** What the gateway and its parsing thread say to each other. */
import type { ErrorCode } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { Reading, ReadRequest } from "./read-request.js";

export interface ParseQuestion {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly reading: Reading;
}

/** A thread hands on a Buffer as the array that it is. */
export type SentTensor = Omit<Tensor, "data"> & { readonly data: Uint8Array };

export type ParseAnswer =
  | { readonly kind: "read"; readonly request: ReadRequest; readonly inputs: readonly SentTensor[] }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "failed"; readonly reason: string };
