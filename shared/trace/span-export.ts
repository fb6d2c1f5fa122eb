/**
 * Sends spans to the receiver by OpenTelemetry's exporter. Only this file imports the exporter, and
 * only a process with traces imports this file. Nothing ever waits for the receiver: while it is
 * slow or away, spans wait up to a limit, and further spans are dropped and counted.
 */
import {
  createTraceState,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type HrTime,
  type SpanContext,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { SpanIds } from "./context.js";
import type { OpenTracer, TracerTerms } from "./open.js";
import type { Attributes, Span } from "./span.js";

/** Spans of one request to the receiver. */
const AT_ONCE = 512;
/** The most spans that wait for the receiver. Further spans are dropped. */
const MOST_WAITING = 4_096;
/** How long the first of some spans waits for others, in ms. */
const DELAY_MS = 1_000;
/** How long the receiver may take for some spans, in ms, with the tries after a failure. */
const PATIENCE_MS = 5_000;
/** How long a stopping process waits for the receiver, in ms. */
const CLOSING_MS = 2_000;
/** The log names dropped spans at most this often, in ms. */
const SAID_EVERY_MS = 60_000;
/** Beyond this difference, in ms, somebody has set the machine's clock. */
const MOST_DRIFT_MS = 100;

const kinds = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

export interface ExportTerms extends TracerTerms {
  readonly url: string;
  /** Secret. */
  readonly headers: Readonly<Record<string, string>>;
}

export class SpanExport implements OpenTracer {
  readonly #log: TracerTerms["log"];
  readonly #onDropped: TracerTerms["onDropped"];
  readonly #processor: BatchSpanProcessor;
  readonly #shared: Pick<ReadableSpan, "resource" | "instrumentationScope">;
  /** Spans that the processor has, and the exporter has not. */
  #waiting = 0;
  /** Spans that were dropped since the log last named them. */
  #unsaid = 0;
  #saidAt = -Infinity;
  #saying: NodeJS.Timeout | undefined;
  /** The Unix time of `performance.now()`'s zero, in ms. */
  #zero = performance.timeOrigin;

  constructor({ url, headers, role, process: name, log, onDropped }: ExportTerms) {
    this.#log = log;
    this.#onDropped = onDropped;
    this.#shared = {
      resource: resourceFromAttributes({ "service.name": "baton", "service.instance.id": name, "baton.role": role }),
      instrumentationScope: { name: "baton" },
    };
    const exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: PATIENCE_MS });
    this.#processor = new BatchSpanProcessor(this.#counted(exporter), {
      maxExportBatchSize: AT_ONCE,
      maxQueueSize: MOST_WAITING,
      scheduledDelayMillis: DELAY_MS,
      // The exporter gives up before.
      exportTimeoutMillis: 2 * PATIENCE_MS,
    });
  }

  record(span: Span): void {
    if (this.#waiting >= MOST_WAITING) return this.#drop(1, "too many spans wait");
    this.#waiting++;
    this.#processor.onEnd(this.#readable(span));
  }

  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSING_MS)));
    await Promise.race([this.#processor.shutdown().catch(() => undefined), late]);
    clearTimeout(timer);
    this.#say("the process ends");
  }

  /** The exporter, which says how many spans it has taken, and how many it could not send. */
  #counted(exporter: OTLPTraceExporter): SpanExporter {
    return {
      export: (spans, done) => {
        this.#waiting -= spans.length;
        exporter.export(spans, (result) => {
          if (result.error !== undefined) this.#drop(spans.length, result.error.message);
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
    };
  }

  #drop(spans: number, reason: string): void {
    this.#onDropped?.(spans);
    this.#unsaid += spans;
    if (this.#saying !== undefined) return;
    const waitMs = Math.max(0, this.#saidAt + SAID_EVERY_MS - performance.now());
    this.#saying = setTimeout(() => this.#say(reason), waitMs).unref();
  }

  #say(reason: string): void {
    clearTimeout(this.#saying);
    this.#saying = undefined;
    if (this.#unsaid === 0) return;
    this.#log({ spans: this.#unsaid, reason }, "spans dropped: the receiver of traces does not take them");
    this.#unsaid = 0;
    this.#saidAt = performance.now();
  }

  #readable(span: Span): ReadableSpan {
    const { name, kind, ids, parentId, state, startAt, endAt, attributes, links = [], events = [], error } = span;
    this.#followClock();
    const own = contextOf(ids, state);
    return {
      ...this.#shared,
      name,
      kind: kinds[kind],
      spanContext: () => own,
      ...(parentId !== undefined && { parentSpanContext: contextOf({ traceId: ids.traceId, spanId: parentId }) }),
      startTime: this.#time(startAt),
      endTime: this.#time(endAt),
      duration: hrTime(endAt - startAt),
      status: error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
      attributes: present({ ...attributes, "error.type": error }),
      links: links.map((linked) => ({ context: contextOf(linked) })),
      events: events.map((one) => ({ name: one.name, time: this.#time(one.at), attributes: present(one.attributes) })),
      ended: true,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  }

  #followClock(): void {
    const zero = Date.now() - performance.now();
    if (Math.abs(zero - this.#zero) > MOST_DRIFT_MS) this.#zero = zero;
  }

  #time(at: number): HrTime {
    return hrTime(this.#zero + at);
  }
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}

function contextOf({ traceId, spanId }: SpanIds, state?: string): SpanContext {
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return state === undefined ? context : { ...context, traceState: createTraceState(state) };
}

function present(attributes: Attributes): ReadableSpan["attributes"] {
  const found: ReadableSpan["attributes"] = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) found[name] = typeof value === "object" ? [...value] : value;
  }
  return found;
}
