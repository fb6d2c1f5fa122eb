/**
 * The services of gRPC and their messages, from the `.proto` files beside this one, as
 * `@grpc/grpc-js` takes them. The messages of inference pass as bytes: their own codec refuses a
 * wrong message in words, where the library would answer INTERNAL.
 */
import { fileURLToPath } from "node:url";
import { loadSync, type MethodDefinition, type PackageDefinition, type ServiceDefinition } from "@grpc/proto-loader";

const INFERENCE = "inference.GRPCInferenceService";
const HEALTH = "grpc.health.v1.Health";

export interface GrpcServices {
  /** The files as they are, for reflection. */
  readonly definitions: PackageDefinition;
  readonly inference: ServiceDefinition;
  readonly health: ServiceDefinition;
}

/** Reads the files, which takes some tens of milliseconds. */
export function loadServices(): GrpcServices {
  const files = ["inference.proto", "health.proto"].map((name) => fileURLToPath(new URL(name, import.meta.url)));
  const terms = { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true, bytes: Buffer };
  const definitions = loadSync(files, terms);
  const inference = serviceOf(definitions, INFERENCE);
  const raw = { requestDeserialize: asIs, responseSerialize: asIs };
  return {
    definitions,
    inference: {
      ...inference,
      ModelInfer: { ...methodOf(inference, "ModelInfer"), ...raw },
      ModelStreamInfer: { ...methodOf(inference, "ModelStreamInfer"), ...raw },
    },
    health: serviceOf(definitions, HEALTH),
  };
}

function serviceOf(definitions: PackageDefinition, name: string): ServiceDefinition {
  const found = definitions[name];
  if (found === undefined || "format" in found) throw new TypeError(`the protocol has no service ${name}`);
  return found;
}

function methodOf(service: ServiceDefinition, name: string): MethodDefinition<object, object> {
  const found = service[name];
  if (found === undefined) throw new TypeError(`the protocol has no method ${name}`);
  return found;
}

/** @param bytes a message of gRPC */
function asIs(bytes: object): Buffer {
  return bytes as Buffer;
}
