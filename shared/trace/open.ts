/** Opens the tracer of a process, if its settings ask for traces. */
import type { z } from "zod";
import type { Tracer } from "./span.js";
import { parseHeaders, traceUrlOf, type traceSettings } from "./settings.js";

export interface TracerTerms {
  readonly role: "gateway" | "worker" | "jobs";
  /** A name that no other process has. */
  readonly process: string;
  /** Takes fields and then the line. */
  readonly log: (fields: Readonly<Record<string, unknown>>, line: string) => void;
  /** Called with numbers of spans that the receiver did not take; absent if nobody counts. */
  readonly onDropped?: (spans: number) => void;
}

export interface OpenTracer extends Tracer {
  /** Sends the spans that wait, as far as the receiver takes them within 2 s. */
  close(): Promise<void>;
}

/** @returns undefined without traces; then none of OpenTelemetry's modules is loaded */
export async function openTracer(
  config: z.infer<z.ZodObject<typeof traceSettings>>,
  terms: TracerTerms,
): Promise<OpenTracer | undefined> {
  const url = traceUrlOf(config);
  if (url === undefined) return undefined;
  const { SpanExport } = await import("./span-export.js");
  return new SpanExport({ url, headers: parseHeaders(config.BATON_TRACE_HEADERS ?? "") ?? {}, ...terms });
}
