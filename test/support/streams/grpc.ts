/** Reads a generation over ModelStreamInfer, from the record behind the last one on. */
import { GrpcClient, type Message } from "../../protocols/grpc/client.js";
import { soonBack } from "../doors/grpc-message.js";
import type { StreamAsk } from "./ask.js";
import type { SourceEnd } from "./event-source.js";

export interface GrpcReading {
  /** Host and port of a gateway. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ask: StreamAsk;
  readonly key: string;
  /** The last index that has come; undefined before the first. */
  readonly after: number | undefined;
  /** @returns whether to read on */
  readonly onPart: (part: GrpcPart) => boolean;
}

/** A message of the answer. */
export interface GrpcPart {
  readonly index: number;
  /** Undefined if the message only says that the answer is complete. */
  readonly text: string | undefined;
  readonly isFinal: boolean;
  /** The code and the text of an error. */
  readonly error: readonly [string | undefined, string] | undefined;
}

/** Parameters of gRPC have no lists, and a client that reads texts alone wants a single choice. */
export function suitsGrpc({ prompt, parameters }: StreamAsk): boolean {
  const isPlain = Object.values(parameters).every((value) => typeof value !== "object");
  return typeof prompt === "string" && isPlain && parameters["n"] === undefined;
}

export async function readGrpc({ target, headers, ask, key, after, onPart }: GrpcReading): Promise<SourceEnd> {
  const client = new GrpcClient(target, soonBack);
  const stream = client.stream(headers);
  let hasLeft = false;
  stream.call.on("data", (message: Message) => {
    if (hasLeft || onPart(partIn(message))) return;
    hasLeft = true;
    stream.call.cancel();
  });
  const more = { idempotency_key: key, triton_enable_empty_final_response: true };
  stream.send({
    model_name: ask.model,
    id: key,
    parameters: parametersOf({ ...ask.parameters, ...more, ...(after === undefined ? {} : { resume_after: after }) }),
    inputs: [
      {
        name: "text_input",
        datatype: "BYTES",
        shape: [1, 1],
        contents: { bytes_contents: [Buffer.from(String(ask.prompt))] },
      },
    ],
  });
  const { code, details } = await stream.ended;
  client.close();
  return hasLeft ? { kind: "left" } : { kind: "cut", why: `grpc ${code} ${details}` };
}

function parametersOf(given: StreamAsk["parameters"]): Message {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (typeof value === "boolean") return [name, { bool_param: value }];
      if (typeof value === "string") return [name, { string_param: value }];
      return [name, Number.isInteger(value) ? { int64_param: String(value) } : { double_param: value }];
    }),
  );
}

interface Response {
  readonly raw_output_contents: readonly Buffer[];
  readonly parameters: Readonly<
    Record<string, { readonly bool_param?: boolean; readonly int64_param?: string; readonly string_param?: string }>
  >;
}

/** The bytes in front of a text, which say its length. */
const LENGTH_BYTES = 4;

function partIn(message: Message): GrpcPart {
  const { raw_output_contents: raw, parameters } = message["infer_response"] as Response;
  const said = String(message["error_message"]);
  return {
    index: Number(parameters["response_index"]?.int64_param),
    text: raw[0]?.subarray(LENGTH_BYTES).toString("utf8"),
    isFinal: parameters["triton_final_response"]?.bool_param === true,
    error: said === "" ? undefined : [parameters["baton_code"]?.string_param, said],
  };
}
