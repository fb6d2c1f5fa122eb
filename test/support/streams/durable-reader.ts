/**
 * An application that reads a stream with the client of the Durable Streams protocol, unmodified.
 * The client itself repeats requests that could not be sent. Where an answer breaks off, it tells
 * the application, which begins anew at the offset that it was given last.
 */
import { stream, type JsonBatch, type StreamResponse } from "@durable-streams/client";

export interface DurableReading {
  /** The records, as objects; none where the text was asked for. */
  readonly records: readonly unknown[];
  readonly text: string;
  /** How many sessions of the client it took. */
  readonly sessions: number;
  /** How many requests could not be sent or were refused, and were repeated by the client. */
  readonly repeated: number;
}

type Metadata = Pick<JsonBatch, "offset" | "upToDate" | "streamClosed">;

export interface DurableReadingPlan {
  /** The stream's URL at the gateway that is asked in this session, counted from 0. */
  readonly url: (session: number) => string;
  readonly live: "long-poll" | "sse" | false;
  readonly format: "json" | "text";
  readonly offset?: string;
  /** Is told how many pieces the application has been given so far, the empty ones too. */
  readonly onPiece?: (count: number) => void;
}

/** An application gives up when this many sessions in a row have brought nothing. */
const MOST_IN_VAIN = 100;

export async function readDurably({
  url,
  live,
  format,
  offset = "-1",
  onPiece,
}: DurableReadingPlan): Promise<DurableReading> {
  const records: unknown[] = [];
  const reading = { records, text: "", sessions: 0, repeated: 0 };
  let at = offset;
  let pieces = 0;
  for (let inVain = 0; inVain < MOST_IN_VAIN; inVain++) {
    const session = await stream({
      url: url(reading.sessions++),
      headers: format === "text" ? { accept: "text/plain" } : {},
      offset: at,
      live,
      backoffOptions: {
        initialDelay: 50,
        maxDelay: 500,
        multiplier: 1.3,
        maxRetries: 200,
        onFailedAttempt: () => void reading.repeated++,
      },
    });
    try {
      const isWhole = await consume(session, format, live === false, (piece, next) => {
        if (typeof piece === "string") reading.text += piece;
        else records.push(...piece);
        at = next;
        inVain = 0;
        onPiece?.(++pieces);
      });
      if (isWhole) return reading;
    } catch (error) {
      // A connection that broke. A refusal would be an error of the client's own, and is thrown.
      if (!(error instanceof TypeError)) throw error;
    }
  }
  throw new Error(`${MOST_IN_VAIN} sessions in a row brought nothing`);
}

/** The client says that a session has closed before it has handed on the last piece. */
const LAST_PIECE_MS = 5_000;

/**
 * @param once whether the application leaves when it has read all that is there
 * @returns whether it was read to its end; otherwise nothing more comes of this session
 */
async function consume(
  session: StreamResponse,
  format: "json" | "text",
  once: boolean,
  take: (piece: readonly unknown[] | string, next: string) => void,
): Promise<boolean> {
  let over = false;
  let wake = (): void => undefined;
  let isWhole = false;
  const whole = new Promise<void>((resolve) => (wake = resolve));
  const handle = (piece: readonly unknown[] | string, { offset, upToDate, streamClosed }: Metadata): void => {
    if (over) return;
    take(piece, offset);
    isWhole = streamClosed || (once && upToDate);
    if (isWhole) wake();
  };
  if (format === "json") session.subscribeJson((batch) => handle(batch.items, batch));
  else session.subscribeText((chunk) => handle(chunk.text, chunk));
  try {
    await Promise.race([whole, session.closed]);
    await Promise.race([whole, new Promise((resolve) => setTimeout(resolve, LAST_PIECE_MS))]);
    return isWhole;
  } finally {
    over = true;
  }
}
