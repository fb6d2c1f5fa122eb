/**
 * A client of Triton's gRPC: the library's own client over the messages of the `.proto` file, which
 * the gateway reads and writes with a codec of its own.
 */
import { fileURLToPath } from "node:url";
import {
  Client,
  credentials,
  Metadata,
  type ChannelCredentials,
  type ClientDuplexStream,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync, type MethodDefinition, type ServiceDefinition } from "@grpc/proto-loader";

const folder = new URL("../../../gateway/doors/grpc/", import.meta.url);
const files = ["inference.proto", "health.proto"].map((name) => fileURLToPath(new URL(name, folder)));
const loaded = loadSync(files, { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true });

function methodOf(service: string, name: string): MethodDefinition<object, object> {
  const method = (loaded[service] as ServiceDefinition)[name];
  if (method === undefined) throw new Error(`${service} has no ${name}`);
  return method;
}

/** The bytes of a request. */
export function asMessage(name: string, message: Message): Buffer {
  return methodOf(INFERENCE, name).requestSerialize(message);
}

export const INFERENCE = "inference.GRPCInferenceService";
export const HEALTH = "grpc.health.v1.Health";

/** A message of the protocol. */
export type Message = Readonly<Record<string, unknown>>;

export interface Answer {
  /** Undefined if the call failed. */
  readonly message?: Message;
  /** 0 if all went well. */
  readonly status: number;
  readonly details: string;
  readonly trailers: Readonly<Record<string, unknown>>;
}

export interface CallTerms {
  readonly headers?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
  readonly service?: string;
  /** Aborts the call. */
  readonly signal?: AbortSignal;
}

export class GrpcClient {
  readonly client: Client;

  constructor(target: string, options: object = {}, secure: ChannelCredentials = credentials.createInsecure()) {
    this.client = new Client(target, secure, {
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      "grpc.use_local_subchannel_pool": 1,
      ...options,
    });
  }

  call(name: string, message: Message, terms: CallTerms = {}): Promise<Answer> {
    const { path, requestSerialize, responseDeserialize } = methodOf(terms.service ?? INFERENCE, name);
    return this.callBytes(path, requestSerialize(message), responseDeserialize, terms);
  }

  /** Sends any bytes as a message. */
  callBytes(
    path: string,
    bytes: Buffer,
    read: (bytes: Buffer) => object = (answer) => ({ answer }),
    { headers = {}, deadlineMs, signal }: CallTerms = {},
  ): Promise<Answer> {
    return new Promise((resolve) => {
      let trailers: Metadata | undefined;
      let settle: (() => void) | undefined;
      const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
      const done = (error: ServiceError | null, message: object | undefined) => {
        settle = () =>
          resolve({
            ...(message !== undefined && { message: message as Message }),
            status: error?.code ?? 0,
            details: error?.details ?? "",
            trailers: (error?.metadata ?? trailers)?.getMap() ?? {},
          });
        if (error !== null || trailers !== undefined) settle();
      };
      const call = this.client.makeUnaryRequest(path, asIs, read, bytes, metadataOf(headers), options, done);
      call.on("status", ({ metadata }) => {
        trailers = metadata;
        settle?.();
      });
      signal?.addEventListener("abort", () => call.cancel());
    });
  }

  /** Opens ModelStreamInfer. */
  stream(headers: Readonly<Record<string, string>> = {}, deadlineMs?: number): InferStream {
    const { path, requestSerialize, responseDeserialize } = methodOf(INFERENCE, "ModelStreamInfer");
    const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
    return new InferStream(
      this.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadataOf(headers), options),
    );
  }

  close(): void {
    this.client.close();
  }
}

/** The messages of a stream, in the order in which they came. */
export class InferStream {
  readonly call: ClientDuplexStream<object, object>;
  readonly messages: Message[] = [];
  /** Resolves with the status of the stream. */
  readonly ended: Promise<{ readonly code: number; readonly details: string; readonly metadata: Metadata }>;
  readonly #waiters = new Set<() => void>();

  constructor(call: ClientDuplexStream<object, object>) {
    this.call = call;
    call.on("data", (message: Message) => {
      this.messages.push(message);
      for (const wake of this.#waiters) wake();
    });
    call.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      call.on("status", (status) => {
        resolve(status);
        for (const wake of this.#waiters) wake();
      });
    });
  }

  send(message: Message): void {
    this.call.write(message);
  }

  /** Resolves when so many messages have come. */
  async received(count: number): Promise<readonly Message[]> {
    let isOver = false;
    void this.ended.then(() => (isOver = true));
    while (this.messages.length < count) {
      if (isOver) throw new Error(`the stream has ended after ${this.messages.length} messages of ${count}`);
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiters.delete(wake);
          resolve();
        };
        this.#waiters.add(wake);
      });
      await Promise.resolve();
    }
    return this.messages;
  }

  /** Ends the client's side, and resolves with all messages. */
  async finish(): Promise<readonly Message[]> {
    this.call.end();
    await this.ended;
    return this.messages;
  }
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

/** The parameters of a request by their fields. */
export function parameters(given: Readonly<Record<string, boolean | number | bigint | string>>): Message {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (typeof value === "boolean") return [name, { bool_param: value }];
      if (typeof value === "string") return [name, { string_param: value }];
      return [name, { int64_param: String(value) }];
    }),
  );
}

export function int32s(...values: readonly number[]): Buffer {
  return Buffer.from(Int32Array.from(values).buffer);
}
