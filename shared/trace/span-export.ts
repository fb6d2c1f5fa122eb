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
  readonly #shared: Shared;
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
    this.#followClock();
    return new EndedSpan(span, this.#zero, this.#shared);
  }

  #followClock(): void {
    const zero = Date.now() - performance.now();
    if (Math.abs(zero - this.#zero) > MOST_DRIFT_MS) this.#zero = zero;
  }
}

type Shared = Pick<ReadableSpan, "resource" | "instrumentationScope">;

/** A span as the exporter reads it, of one shape: objects spread together were slow. */
class EndedSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKind;
  declare readonly parentSpanContext?: SpanContext;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly duration: HrTime;
  readonly status: ReadableSpan["status"];
  readonly attributes: ReadableSpan["attributes"];
  readonly links: ReadableSpan["links"];
  readonly events: ReadableSpan["events"];
  readonly ended = true;
  readonly resource: ReadableSpan["resource"];
  readonly instrumentationScope: ReadableSpan["instrumentationScope"];
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly #own: SpanContext;

  /** @param zero the Unix time of `performance.now()`'s zero, in ms */
  constructor(span: Span, zero: number, { resource, instrumentationScope }: Shared) {
    const { name, kind, ids, parentId, state, startAt, endAt, attributes, links = [], events = [], error } = span;
    this.#own = contextOf(ids, state);
    this.name = name;
    this.kind = kinds[kind];
    if (parentId !== undefined) this.parentSpanContext = contextOf({ traceId: ids.traceId, spanId: parentId });
    this.startTime = hrTime(zero + startAt);
    this.endTime = hrTime(zero + endAt);
    this.duration = hrTime(endAt - startAt);
    this.status = error === undefined ? unset : { code: SpanStatusCode.ERROR, message: error };
    this.attributes = present(attributes, error);
    this.links = links.map((linked) => ({ context: contextOf(linked) }));
    this.events = events.map((one) => ({
      name: one.name,
      time: hrTime(zero + one.at),
      attributes: present(one.attributes),
    }));
    this.resource = resource;
    this.instrumentationScope = instrumentationScope;
  }

  spanContext(): SpanContext {
    return this.#own;
  }
}

const unset = { code: SpanStatusCode.UNSET };

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}

function contextOf({ traceId, spanId }: SpanIds, state?: string): SpanContext {
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return state === undefined ? context : { ...context, traceState: createTraceState(state) };
}

function present(attributes: Attributes, error?: string): ReadableSpan["attributes"] {
  const found: ReadableSpan["attributes"] = {};
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined) found[name] = typeof value === "object" ? [...value] : value;
  }
  if (error !== undefined) found["error.type"] = error;
  return found;
}
