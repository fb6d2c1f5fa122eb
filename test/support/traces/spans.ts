/** The traces that clients begin, and a look at the spans that came of them. */
import { randomBytes } from "node:crypto";
import type { ReceivedSpan } from "./receiver.js";

/** @param flags `01` if the client records the trace */
export function clientsTrace(flags = "01") {
  const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

/** For each span its name behind the names of its parents, sorted. */
export function pathsOf(spans: readonly ReceivedSpan[]): string[] {
  const path = ({ name, parentSpanId }: ReceivedSpan): string => {
    const parent = spans.find(({ spanId }) => spanId === parentSpanId);
    return parent === undefined ? name : `${path(parent)} > ${name}`;
  };
  return spans.map(path).sort();
}

/** @throws Error if no span has the name */
export function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.find((span) => span.name === name);
  if (found === undefined) throw new Error(`no span ${name} among ${spans.map((span) => span.name).join(", ")}`);
  return found;
}
