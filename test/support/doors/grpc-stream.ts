/**
 * The door of ModelStreamInfer. All requests to a gateway share a stream. If the stream ends, each
 * request without a whole answer ends unknown; the next attempt sends the request under its key on
 * another stream, and asks only for the parts that have not come yet.
 */
import { GrpcClient, type InferStream } from "../../protocols/grpc/client.js";
import type { Call } from "./call.js";
import { failure, joined, tenantHeader, type Attempt, type Door, type DoorTerms, type Part } from "./door.js";
import { messageOf, soonBack, toldBy, type Told } from "./grpc-message.js";

export interface StreamTerms extends DoorTerms {
  /** The answers leave as they are there, not in the order of their requests. */
  readonly unordered: boolean;
}

/** How many characters of a status the history keeps. */
const SHOWN = 60;

export class GrpcStreamDoor implements Door {
  readonly #terms: StreamTerms;
  readonly #clients = new Map<string, GrpcClient>();
  /** By gateway and tenant. */
  readonly #streams = new Map<string, SharedStream>();

  constructor(terms: StreamTerms) {
    this.#terms = terms;
  }

  attempt(gateway: string, call: Call, heard: Part[]): Promise<Attempt> {
    const name = `${gateway} ${call.tenant ?? ""}`;
    const open = this.#streams.get(name);
    const stream = open === undefined || open.hasEnded ? this.#open(gateway, call) : open;
    this.#streams.set(name, stream);
    return stream.ask(call, heard);
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.leave("closed");
    for (const client of this.#clients.values()) client.close();
  }

  #open(gateway: string, call: Call): SharedStream {
    const client = this.#clients.get(gateway) ?? new GrpcClient(gateway, soonBack);
    this.#clients.set(gateway, client);
    const order = this.#terms.unordered ? { "baton-unordered": "true" } : {};
    return new SharedStream(client.stream({ ...order, ...tenantHeader(this.#terms, call) }), this.#terms);
  }
}

interface Waiting {
  readonly heard: Part[];
  readonly end: (attempt: Attempt) => void;
  readonly timer: NodeJS.Timeout;
}

class SharedStream {
  hasEnded = false;
  readonly #stream: InferStream;
  readonly #terms: StreamTerms;
  readonly #waiting = new Map<string, Waiting>();

  constructor(stream: InferStream, terms: StreamTerms) {
    this.#stream = stream;
    this.#terms = terms;
    stream.call.on("data", (message: Record<string, unknown>) => {
      if (this.hasEnded) return;
      const { random, leaves } = terms;
      if (random.chance(leaves)) this.leave("left");
      else this.#hear(toldBy(message["infer_response"] as Record<string, unknown>));
    });
    void stream.ended.then(({ code, details }) => this.#end(`stream ended ${code} ${details.slice(0, SHOWN)}`));
  }

  ask(call: Call, heard: Part[]): Promise<Attempt> {
    return new Promise((end) => {
      const { attemptMs } = this.#terms;
      const timer = setTimeout(() => this.leave(`no answer in ${attemptMs} ms`), attemptMs);
      this.#waiting.set(call.request, { heard, end, timer });
      const last = heard.at(-1);
      this.#stream.send(
        messageOf(call, {
          triton_enable_empty_final_response: true,
          ...(call.unkeyed === true ? {} : { idempotency_key: call.request }),
          ...(last === undefined ? {} : { resume_after: last.index }),
        }),
      );
    });
  }

  /** The client gives the stream up, with all requests on it. */
  leave(why: string): void {
    this.#end(why);
    this.#stream.call.cancel();
  }

  #end(why: string): void {
    this.hasEnded = true;
    for (const [request] of this.#waiting) this.#settle(request, { ending: { kind: "unknown", why } });
  }

  #hear({ request, version, output, code, index, isFinal }: Told): void {
    const waiting = this.#waiting.get(request);
    if (waiting === undefined) return this.#terms.onStray(request);
    waiting.timer.refresh();
    if (code !== undefined) return this.#settle(request, { ending: failure(code) });
    if (output !== undefined) waiting.heard.push({ index, output });
    if (!isFinal) return;
    this.#settle(request, { ending: { kind: "ok", output: joined(waiting.heard), echoedId: request, version } });
  }

  #settle(request: string, attempt: Attempt): void {
    const waiting = this.#waiting.get(request);
    if (waiting === undefined) return;
    clearTimeout(waiting.timer);
    this.#waiting.delete(request);
    waiting.end(attempt);
  }
}
