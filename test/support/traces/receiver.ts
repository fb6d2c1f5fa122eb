/** A receiver of traces, as JSON over OTLP/HTTP, that a test can let hang, refuse or go. */
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { readUntil } from "../until.js";

type Values = Readonly<Record<string, unknown>>;

/** A span as the receiver got it, with its resource's attributes. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly startAt: bigint;
  readonly endAt: bigint;
  readonly attributes: Values;
  readonly resource: Values;
  readonly events: readonly { readonly name: string; readonly attributes: Values }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: the span ended with an error. */
  readonly status: number;
}

/** How the receiver answers; `flood`: without an end, as fast as the sender reads. */
export type Manner = "take" | "hang" | "refuse" | "flood";

export class TraceReceiver {
  /** The headers of the requests, in the order of their arrival. */
  readonly asked: IncomingHttpHeaders[] = [];
  readonly spans: ReceivedSpan[] = [];
  readonly url: string;
  manner: Manner = "take";
  readonly #port: number;
  #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.#port}/v1/traces`;
    server.on("request", this.#onRequest);
  }

  static async start(): Promise<TraceReceiver> {
    return new TraceReceiver(await listening(0));
  }

  /** Refuses connections until `comeBack`. */
  async leave(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async comeBack(): Promise<void> {
    this.#server = await listening(this.#port);
    this.#server.on("request", this.#onRequest);
  }

  of(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  /** @returns the spans of the trace, when all these names are there, or none comes any more */
  whole(traceId: string, names: readonly string[]): Promise<ReceivedSpan[]> {
    const read = async () => this.of(traceId);
    return readUntil(read, (found) => {
      const left = found.map(({ name }) => name);
      return names.every((name) => {
        const at = left.indexOf(name);
        if (at >= 0) left.splice(at, 1);
        return at >= 0;
      });
    });
  }

  readonly #onRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    this.asked.push(incoming.headers);
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      if (this.manner === "hang") return;
      if (this.manner === "refuse") return void outgoing.writeHead(503).end();
      if (this.manner === "flood") return flood(outgoing.writeHead(200));
      this.spans.push(...spansIn(Buffer.concat(pieces).toString()));
      outgoing.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  };
}

function flood(outgoing: ServerResponse): void {
  const piece = Buffer.alloc(65_536, " ");
  const more = (): void => {
    while (!outgoing.destroyed && outgoing.write(piece));
  };
  outgoing.on("drain", more);
  more();
}

async function listening(port: number): Promise<Server> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}

interface Attribute {
  readonly key: string;
  readonly value: Values;
}

/** Empty members are absent. */
type Optional = Partial<Pick<ReceivedSpan, "parentSpanId" | "traceState" | "links">>;

interface SentSpan extends Optional, Pick<ReceivedSpan, "name" | "kind" | "traceId" | "spanId"> {
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly events?: readonly { readonly name: string; readonly attributes: readonly Attribute[] }[];
  readonly status: { readonly code?: number };
}

interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
  }[];
}

function spansIn(text: string): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(text) as Sent;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => received(span, valuesOf(resource.attributes)))),
  );
}

function received(span: SentSpan, resource: Values): ReceivedSpan {
  const { name, kind, traceId, spanId, parentSpanId = "", traceState = "", links = [] } = span;
  return {
    name,
    kind,
    traceId,
    spanId,
    parentSpanId,
    traceState,
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    startAt: BigInt(span.startTimeUnixNano),
    endAt: BigInt(span.endTimeUnixNano),
    attributes: valuesOf(span.attributes),
    resource,
    events: (span.events ?? []).map((event) => ({ name: event.name, attributes: valuesOf(event.attributes) })),
    status: span.status.code ?? 0,
  };
}

/** Each value lies below the name of its type. */
function valuesOf(attributes: readonly Attribute[]): Values {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
