/**
 * Takes a recorded answer apart: which event was complete at which time. Runs after the clock has
 * stopped, so that the client takes little CPU during the measurement.
 */

/** Bytes that the socket gave at once. */
export interface Arrival {
  readonly at: number;
  readonly bytes: Buffer;
}

export interface StreamEvent {
  /** Index of the record. */
  readonly index: number;
  readonly text: string;
  readonly finish: string | null;
  /** Time of the event's last byte. */
  readonly at: number;
}

export interface Answered {
  readonly events: readonly StreamEvent[];
  /** Whether `[DONE]` came last. */
  readonly done: boolean;
}

interface Piece {
  /** Offset of the piece's end in the body. */
  readonly end: number;
  readonly at: number;
}

/** @param arrivals a whole HTTP/1.1 response with chunked encoding */
export function eventsOf(arrivals: readonly Arrival[]): Answered {
  const { body, pieces } = bodyOf(arrivals);
  const events: StreamEvent[] = [];
  let done = false;
  let piece = 0;
  for (let from = 0; from < body.length;) {
    const end = body.indexOf("\n\n", from);
    if (end === -1) return { events, done: false };
    while ((pieces[piece]?.end ?? Infinity) < end + 2) piece++;
    const fields = fieldsOf(body.toString("utf8", from, end));
    from = end + 2;
    if (fields.data === undefined) continue; // a comment: the stream is alive
    done = fields.data === "[DONE]";
    if (done) continue;
    const { choices } = JSON.parse(fields.data) as { choices: { text: string; finish_reason: string | null }[] };
    const [choice] = choices;
    const index = Number(fields.id);
    const at = pieces[piece]?.at ?? Number.NaN;
    if (choice === undefined) throw new Error(`not an event of a completion: ${fields.data}`);
    events.push({ index, text: choice.text, finish: choice.finish_reason, at });
  }
  return { events, done };
}

function fieldsOf(event: string): { id?: string; data?: string } {
  const fields: Record<string, string> = {};
  for (const line of event.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return fields;
}

/** The body without HTTP's chunks, and the time of each part. */
function bodyOf(arrivals: readonly Arrival[]): { body: Buffer; pieces: Piece[] } {
  const raw = Buffer.concat(arrivals.map(({ bytes }) => bytes));
  const parts: Buffer[] = [];
  const pieces: Piece[] = [];
  let arrival = 0;
  let arrivedTo = arrivals[0]?.bytes.length ?? 0;
  let length = 0;
  for (let at = raw.indexOf("\r\n\r\n") + 4; at < raw.length;) {
    const line = raw.indexOf("\r\n", at);
    const size = Number.parseInt(raw.toString("latin1", at, line), 16);
    if (!(size > 0)) break;
    const from = line + 2;
    const to = from + size;
    parts.push(raw.subarray(from, to));
    // A chunk may have come in several arrivals.
    for (let start = from; start < to;) {
      while (arrivedTo <= start) arrivedTo += arrivals[++arrival]?.bytes.length ?? Infinity;
      const end = Math.min(to, arrivedTo);
      length += end - start;
      pieces.push({ end: length, at: arrivals[arrival]?.at ?? Number.NaN });
      start = end;
    }
    at = to + 2;
  }
  return { body: Buffer.concat(parts), pieces };
}
