/**
 * An application that reads a stream with the unmodified client of the Durable Streams protocol.
 * The client itself repeats requests that fail to go out. If an answer breaks off, the client
 * throws, and the application starts again at the last offset.
 */
import { stream, type JsonBatch, type StreamResponse } from "@durable-streams/client";

export interface DurableReading {
  /** The records, as objects; empty if the application asked for text. */
  readonly records: readonly unknown[];
  readonly text: string;
  /** How many sessions of the client the reading took. */
  readonly sessions: number;
  /** How many requests failed or met a refusal, and were repeated by the client. */
  readonly repeated: number;
}

type Metadata = Pick<JsonBatch, "offset" | "upToDate" | "streamClosed">;

export interface DurableReadingPlan {
  /** The stream's URL for a session, counted from 0, at a gateway of the test's choice. */
  readonly url: (session: number) => string;
  readonly live: "long-poll" | "sse" | false;
  readonly format: "json" | "text";
  readonly offset?: string;
  /** Called with the number of pieces that the application got so far, empty pieces included. */
  readonly onPiece?: (count: number) => void;
}

/** An application gives up after this many sessions in a row without a piece. */
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
      // A broken connection gives a TypeError. The reader throws other errors, such as a refusal.
      if (!(error instanceof TypeError)) throw error;
    }
  }
  throw new Error(`${MOST_IN_VAIN} sessions in a row brought nothing`);
}

/**
 * How long to wait for the last piece, because the client reports a closed session before it passes
 * that piece.
 */
const LAST_PIECE_MS = 5_000;

/**
 * @param once whether the application leaves after it has read all present records
 * @returns whether the application read the stream to its end; if not, this session brings nothing
 * more
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
