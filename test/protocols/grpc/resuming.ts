/**
 * A client of ModelStreamInfer that survives the loss of its gateway: it keeps the requests that
 * have no whole answer, and sends them again under their keys, on a stream to the next gateway, in
 * their order.
 */
import { errorKinds, type ErrorCode } from "#shared/errors.js";
import { GrpcClient, parameters, type InferStream, type Message } from "./client.js";

/** A request whose parameters the client completes. */
export interface Request {
  /** Names the request, also as its key. */
  readonly id: string;
  readonly message: Message;
  readonly given: Parameters<typeof parameters>[0];
}

interface Open extends Request {
  /** The last index that has come; undefined before the first. */
  index: number | undefined;
  readonly parts: Message[];
  readonly resolve: (parts: readonly Message[]) => void;
  readonly reject: (error: Error) => void;
}

interface Answer {
  readonly id: string;
  readonly parameters: Readonly<
    Record<string, { readonly bool_param?: boolean; int64_param?: string; string_param?: string }>
  >;
}

const PAUSE_MS = 100;

export class ResumingClient {
  /** How often a stream has ended before its time. */
  resumed = 0;
  /** The statuses with which they ended. */
  readonly statuses = new Set<number>();
  readonly #clients: readonly GrpcClient[];
  readonly #open = new Map<string, Open>();
  #next: number;
  #stream: InferStream | undefined;
  #closed = false;

  /** @param targets the gateways; the first stream goes to that at `first` */
  constructor(targets: readonly string[], first: number) {
    this.#clients = targets.map((target) => new GrpcClient(target, { "grpc.max_reconnect_backoff_ms": 500 }));
    this.#next = first;
    this.#connect();
  }

  /** The gateway of the present stream, or of the last one. */
  get at(): number {
    return (this.#next + this.#clients.length - 1) % this.#clients.length;
  }

  /** @returns the messages of the answer, the errors that ask for a repetition left out */
  ask(request: Request): Promise<readonly Message[]> {
    return new Promise((resolve, reject) => {
      const open = { ...request, index: undefined, parts: [], resolve, reject };
      this.#open.set(request.id, open);
      this.#send(open);
    });
  }

  close(): void {
    this.#closed = true;
    this.#stream?.call.cancel();
    for (const client of this.#clients) client.close();
  }

  #connect(): void {
    const client = this.#clients[this.#next++ % this.#clients.length];
    if (client === undefined) throw new Error("there is no gateway");
    const stream = client.stream();
    this.#stream = stream;
    stream.call.on("data", (message: Message) => {
      if (this.#stream === stream) this.#hear(message);
    });
    void stream.ended.then(({ code }) => {
      if (this.#closed || this.#stream !== stream) return;
      this.statuses.add(code);
      this.#again();
    });
    for (const open of this.#open.values()) this.#send(open);
  }

  /** Goes on with another stream. */
  #again(): void {
    this.resumed++;
    const left = this.#stream;
    this.#stream = undefined;
    left?.call.cancel();
    setTimeout(() => {
      if (!this.#closed) this.#connect();
    }, PAUSE_MS);
  }

  #send({ id, message, given, index }: Open): void {
    const after = index === undefined ? {} : { resume_after: index };
    const more = { idempotency_key: id, triton_enable_empty_final_response: true, ...after };
    this.#stream?.send({ ...message, id, parameters: parameters({ ...given, ...more }) });
  }

  #hear(message: Message): void {
    const answer = message["infer_response"] as Answer;
    const open = this.#open.get(answer.id);
    if (open === undefined) return;
    const { baton_code: code, response_index: index, triton_final_response: final } = answer.parameters;
    if (code?.string_param !== undefined) {
      // The same request may succeed later, and those behind it wait for it.
      if (errorKinds[code.string_param as ErrorCode].retry) return this.#again();
      this.#open.delete(answer.id);
      return open.reject(new Error(`${answer.id}: ${code.string_param}: ${String(message["error_message"])}`));
    }
    open.index = Number(index?.int64_param);
    open.parts.push(message);
    if (final?.bool_param !== true) return;
    this.#open.delete(answer.id);
    open.resolve(open.parts);
  }
}
