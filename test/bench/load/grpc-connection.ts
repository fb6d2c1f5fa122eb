/**
 * A connection of gRPC with as little code as possible: node's HTTP/2, and messages that were made
 * before the clock starts. Steps go as calls, or all on one standing stream.
 */
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { asMessage } from "../../protocols/grpc/client.js";
import type { BenchModel } from "../support/models.js";
import { PATTERNS, STEPS, vectorAt, vectors } from "../support/patterns.js";
import type { Answer } from "./connection.js";

export type Way = "calls" | "stream";

const SERVICE = "/inference.GRPCInferenceService/";
const HEAD_BYTES = 5;

export class GrpcConnection {
  readonly #session: ClientHttp2Session;
  readonly #onAnswer: (answer: Answer) => void;
  readonly #onFault: (error: Error) => void;
  readonly #tensorBytes: number;
  readonly #stream: ClientHttp2Stream | undefined;

  /** @param tensorBytes of the answer's only output, which ends the message */
  constructor(
    { port, way, tensorBytes }: { readonly port: number; readonly way: Way; readonly tensorBytes: number },
    onAnswer: (answer: Answer) => void,
    onFault: (error: Error) => void,
  ) {
    this.#onAnswer = onAnswer;
    this.#onFault = onFault;
    this.#tensorBytes = tensorBytes;
    this.#session = connect(`http://127.0.0.1:${port}`);
    this.#session.on("error", onFault);
    this.#session.on("close", () => onFault(new Error("the gateway closed a connection")));
    this.#stream = way === "stream" ? this.#open("ModelStreamInfer") : undefined;
  }

  /** @param request a framed ModelInferRequest */
  send(request: Buffer): void {
    if (this.#stream === undefined) this.#open("ModelInfer").end(request);
    else this.#stream.write(request);
  }

  close(): void {
    this.#session.removeAllListeners("close").destroy();
  }

  #open(method: string): ClientHttp2Stream {
    const stream = this.#session.request({
      ":method": "POST",
      ":path": SERVICE + method,
      "content-type": "application/grpc",
      te: "trailers",
    });
    let received: Buffer = Buffer.alloc(0);
    stream.on("data", (bytes: Buffer) => {
      received = received.length === 0 ? bytes : Buffer.concat([received, bytes]);
      while (received.length >= HEAD_BYTES) {
        const end = HEAD_BYTES + received.readUInt32BE(1);
        if (received.length < end) return;
        const body = received.subarray(HEAD_BYTES, end);
        received = received.subarray(end);
        this.#onAnswer({ status: 200, body, tensorsAt: body.length - this.#tensorBytes });
      }
    });
    stream.on("trailers", (trailers) => {
      const { "grpc-status": status, "grpc-message": text } = trailers;
      if (status !== "0") this.#onFault(new Error(`gRPC answered ${String(status)}: ${String(text)}`));
    });
    stream.on("error", this.#onFault);
    return stream;
  }
}

/** As `requestsOf` for HTTP. */
export function grpcRequestsOf({ name, size }: BenchModel, sequence: number): Buffer[] {
  const inputs = vectors(size);
  return Array.from({ length: STEPS }, (_, step) => {
    const x = inputs[vectorAt(sequence % PATTERNS, step)] as Float32Array;
    return framed(
      asMessage("ModelInfer", {
        model_name: name,
        parameters: {
          sequence_id: { int64_param: String(sequence + 1) },
          ...(step === 0 && { sequence_start: { bool_param: true } }),
        },
        inputs: [{ name: "X", datatype: "FP32", shape: [1, size] }],
        raw_input_contents: [Buffer.from(x.buffer, x.byteOffset, x.byteLength)],
      }),
    );
  });
}

export function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
