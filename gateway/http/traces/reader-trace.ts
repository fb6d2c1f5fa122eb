/**
 * The trace of a reader that comes to a stream later. The reader's trace is its own, because the
 * stream belongs to the request that began it: a link leads there.
 */
import type { SpanIds } from "#shared/trace/context.js";
import { commonOf, RelaySpan, type Relayed } from "../../trace/relay-span.js";
import type { RequestTrace } from "../../trace/request-trace.js";

/**
 * @param trace of the reader; undefined if the reader is not sampled
 * @param begunBy reads the span of the request that began the stream
 * @returns the span of the stream's way to the reader
 */
export async function readerSpan(
  trace: RequestTrace | undefined,
  relayed: Relayed,
  begunBy: () => Promise<SpanIds | undefined>,
): Promise<RelaySpan | undefined> {
  if (trace === undefined) return undefined;
  trace.note(commonOf(relayed));
  const begun = await begunBy();
  if (begun !== undefined) trace.link(begun);
  return new RelaySpan(trace, relayed);
}
