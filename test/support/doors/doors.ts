/** The doors by name: another kind of client is another line. */
import type { Gateway } from "../fleet/fleet.js";
import type { Door, DoorTerms } from "./door.js";
import { GrpcCallDoor } from "./grpc-call.js";
import { GrpcStreamDoor } from "./grpc-stream.js";
import { HttpDoor } from "./http.js";

interface Entrance {
  /** The address of a gateway for this door. */
  readonly at: "url" | "grpc";
  readonly open: (terms: DoorTerms) => Door;
}

export const doors = {
  http: { at: "url", open: (terms) => new HttpDoor(terms) },
  "grpc-call": { at: "grpc", open: (terms) => new GrpcCallDoor(terms) },
  "grpc-stream": { at: "grpc", open: (terms) => new GrpcStreamDoor({ ...terms, unordered: false }) },
  "grpc-unordered": { at: "grpc", open: (terms) => new GrpcStreamDoor({ ...terms, unordered: true }) },
} as const satisfies Record<string, Entrance>;

export type DoorName = keyof typeof doors;

export function addressesOf(gateways: readonly Gateway[], name: DoorName): readonly string[] {
  return gateways.map((gateway) => gateway[doors[name].at]);
}
