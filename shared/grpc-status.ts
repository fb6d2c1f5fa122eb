/** The status of gRPC for each error. */
import { errorKinds, type ErrorCode, type ErrorKind } from "./errors.js";

/**
 * The status of gRPC by HTTP status. Triton's cases have Triton's status
 * (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
 */
const grpcStatuses: Readonly<Record<ErrorKind["status"], number>> = {
  400: 3, // INVALID_ARGUMENT
  401: 16, // UNAUTHENTICATED
  403: 7, // PERMISSION_DENIED
  404: 5, // NOT_FOUND
  405: 12, // UNIMPLEMENTED
  408: 4, // DEADLINE_EXCEEDED
  409: 10, // ABORTED
  410: 9, // FAILED_PRECONDITION
  413: 8, // RESOURCE_EXHAUSTED
  415: 3,
  422: 3,
  429: 8,
  500: 13, // INTERNAL
  501: 12,
  503: 14, // UNAVAILABLE
  507: 8,
};

/** The status of gRPC for an error. */
export function grpcStatusOf(code: ErrorCode): number {
  const kind: ErrorKind = errorKinds[code];
  return kind.grpc ?? grpcStatuses[kind.status];
}
