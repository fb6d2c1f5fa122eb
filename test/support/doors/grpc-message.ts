/** The messages of gRPC for a call, and the facts in the messages of its answer. */
import { parameters, type Message } from "../../protocols/grpc/client.js";
import type { Call, CallInput } from "./call.js";

type Parameters = Call["parameters"];

/** @param more parameters beside those of the call */
export function messageOf({ request, model, parameters: given, inputs }: Call, more: Parameters = {}): Message {
  return {
    model_name: model,
    id: request,
    parameters: parameters({ ...signed(given), ...more }),
    inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    raw_input_contents: inputs.map(bytesOf),
  };
}

/** Ids above 2^63 - 1 travel as the negative number with the same bits. */
function signed(given: Parameters): Parameters {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, typeof value === "bigint" ? BigInt.asIntN(64, value) : value]),
  );
}

function bytesOf({ datatype, data }: CallInput): Buffer {
  switch (datatype) {
    case "INT32":
      return Buffer.from(Int32Array.from(data, Number).buffer);
    case "INT64":
      return Buffer.from(BigInt64Array.from(data, BigInt).buffer);
    case "FP32":
      return Buffer.from(Float32Array.from(data, Number).buffer);
  }
}

interface InferResponse {
  readonly id: string;
  readonly model_version: string;
  readonly outputs: readonly { readonly datatype: string }[];
  readonly raw_output_contents: readonly Buffer[];
  readonly parameters: Readonly<
    Record<string, { readonly bool_param?: boolean; readonly int64_param?: string; readonly string_param?: string }>
  >;
}

/** A message of an answer. */
export interface Told {
  readonly request: string;
  readonly version: string;
  /** The data of all outputs, as the door of HTTP has them; undefined without outputs. */
  readonly output: string | undefined;
  readonly code: string | undefined;
  readonly index: number;
  readonly isFinal: boolean;
}

export function toldBy(message: Message): Told {
  const {
    id,
    model_version,
    outputs,
    raw_output_contents: raw,
    parameters: given,
  } = message as unknown as InferResponse;
  return {
    request: id,
    version: model_version,
    output:
      raw.length === 0 ? undefined : raw.map((bytes, i) => valuesIn(bytes, outputs[i]?.datatype).join()).join("|"),
    code: given["baton_code"]?.string_param,
    index: Number(given["response_index"]?.int64_param ?? 0),
    isFinal: given["triton_final_response"]?.bool_param === true,
  };
}

function valuesIn(bytes: Buffer, datatype: string | undefined): readonly (number | bigint)[] {
  switch (datatype) {
    case "INT32":
      return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readInt32LE(4 * i));
    case "INT64":
      return Array.from({ length: bytes.length / 8 }, (_, i) => bytes.readBigInt64LE(8 * i));
    case "FP32":
      return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
    default:
      throw new Error(`a door reads no ${datatype ?? "tensor without a datatype"}`);
  }
}

/** Options of a client that finds a gateway again soon after its restart. */
export const soonBack = { "grpc.initial_reconnect_backoff_ms": 50, "grpc.max_reconnect_backoff_ms": 500 };
