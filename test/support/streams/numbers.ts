/**
 * The figures of a stream experiment, for readers, and as proof that the faults have hit streams at
 * all.
 */
import type { Fleet } from "../fleet/fleet.js";
import type { StoredStream } from "./check.js";
import { longestPauseMs, readsRecords, type Reading } from "./history.js";

export interface StreamFigures {
  readonly seconds: number;
  readonly streams: number;
  readonly records: number;
  /** Streams that another worker took over in mid-stream, after their worker died or froze. */
  readonly takenOver: number;
  /** Connections beyond the first of each stream, after the client had read something. */
  readonly reconnects: number;
  /** Connections cut after their head, so that their clients saw no reason. */
  readonly cutWhileReading: number;
  /** The longest pause between two records, for clients that see every record. */
  readonly longestPauseMs: number;
  /**
   * The longest pause between two texts, for the other clients. A token may give no text, such as
   * half a character, and these clients then see no sign of life.
   */
  readonly longestTextPauseMs: number;
  /** The longest wait from the submit to the first piece, retries included. */
  readonly longestFirstMs: number;
  /**
   * The slowest takeover, and the median time of a takeover: how many tokens a worker computed
   * again, and the time from the takeover to the last stream's first token.
   */
  readonly takeovers: { readonly slowest: TakeoverFacts | undefined; readonly medianMs: number | undefined };
  /** How many lines the workers have logged in this experiment, by message. */
  readonly worker: Readonly<Record<string, number>>;
  /** How many messages on NATS the watch looked up in the log. */
  readonly messagesChecked: number;
}

/** A takeover in the log of its worker. */
export interface TakeoverFacts {
  readonly streams: number;
  readonly tokens: number;
  readonly ms: number;
}

/** Messages that count by a field's value, instead of by lines. */
const sums: Readonly<Record<string, string>> = {
  reclaimed: "count",
  "handed back": "count",
  "steps of the dead process are free": "steps",
};
const silent = new Set(["worker ready", "worker stopped"]);

export class StreamNumbers {
  readonly #fleet: Fleet;
  readonly #before: Readonly<Record<string, number>>;
  readonly #begunAt = performance.now();
  readonly #begunAtMs = Date.now();
  #streams = 0;
  #records = 0;
  #takenOver = 0;
  #reconnects = 0;
  #cutWhileReading = 0;
  #longestPauseMs = 0;
  #longestTextPauseMs = 0;
  #longestFirstMs = 0;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.#before = told(fleet);
  }

  add(reading: Reading, { log, takenAt }: StoredStream): void {
    const { pieces, connections, begunAt } = reading;
    this.#streams++;
    this.#records += log.length;
    if (takenAt !== undefined && takenAt > 0 && takenAt < log.length) this.#takenOver++;
    const [first] = pieces;
    if (first !== undefined) {
      this.#longestFirstMs = Math.max(this.#longestFirstMs, first.at - begunAt);
      this.#reconnects += connections.length - 1 - first.connection;
      const read = new Set(pieces.map(({ connection }) => connection));
      this.#cutWhileReading += connections.filter(({ end }, i) => read.has(i) && end.startsWith("cut")).length;
    }
    const paused = longestPauseMs(reading);
    if (readsRecords(reading)) this.#longestPauseMs = Math.max(this.#longestPauseMs, paused);
    else this.#longestTextPauseMs = Math.max(this.#longestTextPauseMs, paused);
  }

  figures(messagesChecked: number): StreamFigures {
    const now = Object.entries(told(this.#fleet)).map(([msg, n]) => [msg, n - (this.#before[msg] ?? 0)] as const);
    return {
      seconds: Math.round((performance.now() - this.#begunAt) / 100) / 10,
      streams: this.#streams,
      records: this.#records,
      takenOver: this.#takenOver,
      reconnects: this.#reconnects,
      cutWhileReading: this.#cutWhileReading,
      longestPauseMs: Math.round(this.#longestPauseMs),
      longestTextPauseMs: Math.round(this.#longestTextPauseMs),
      longestFirstMs: Math.round(this.#longestFirstMs),
      takeovers: this.#takeovers(),
      worker: Object.fromEntries(now.filter(([, n]) => n > 0)),
      messagesChecked,
    };
  }

  #takeovers(): StreamFigures["takeovers"] {
    const facts = linesOf(this.#fleet).flatMap(({ msg, time, streams, tokens, ms }): TakeoverFacts[] =>
      msg === "streams taken over" && Number(time) >= this.#begunAtMs
        ? [{ streams: Number(streams), tokens: Number(tokens), ms: Number(ms) }]
        : [],
    );
    const byMs = facts.sort((a, b) => a.ms - b.ms);
    return { slowest: byMs.at(-1), medianMs: byMs[byMs.length >> 1]?.ms };
  }
}

function linesOf({ workers }: Fleet): Readonly<Record<string, unknown>>[] {
  return workers.flatMap(({ lives }) => lives.flatMap(({ lines }) => lines.map(({ fields }) => fields)));
}

function told(fleet: Fleet): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const fields of linesOf(fleet)) {
    const { msg } = fields;
    if (typeof msg !== "string" || silent.has(msg)) continue;
    const sum = sums[msg];
    counts[msg] = (counts[msg] ?? 0) + (sum === undefined ? 1 : Number(fields[sum] ?? 1));
  }
  return counts;
}
