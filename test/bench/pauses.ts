/** V8's pauses for collecting, read from what its flag makes it print; costs a line of output each, so only profiled runs ask for it. */

export const TRACE_FLAG = "--trace-gc";

/** `[pid:isolate] 123 ms: Scavenge 8.1 (9.4) -> 7.2 (10.4) MB, 0.52 / 0.00 ms  (…)`; the first of the two times is the pause. */
const PAUSE = /^\[\d+:0x[0-9a-f]+\].*, (\d+(?:\.\d+)?) \/ \d+(?:\.\d+)? ms/;

/** @returns milliseconds. */
export function pausesOf(lines: readonly { readonly text: string }[]): number {
  return lines.reduce((sum, { text }) => sum + Number(PAUSE.exec(text)?.[1] ?? 0), 0);
}
