/**
 * The attempts and answers of all clients, in order. Every attempt is a `submit` and exactly
 * one ending. The ending `unknown` means that the client cannot tell whether the request took
 * effect.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Ask, Ending } from "../doors/ask.js";

interface Stamp {
  /** Milliseconds since the history began. */
  readonly at: number;
  readonly client: string;
  readonly attempt: number;
}

export type Submit = Stamp & { readonly kind: "submit"; readonly gateway: string; readonly ask: Ask };
export type Ended = Stamp & { readonly request: string } & Ending;
export type Event = Submit | Ended;

export class History {
  readonly events: Event[] = [];
  /** How many requests the fleet got beside these. */
  elsewhere = 0;
  readonly #clock: () => number;
  readonly #begunAt: number;

  constructor(clock = () => performance.now()) {
    this.#clock = clock;
    this.#begunAt = clock();
  }

  now(): number {
    return this.#clock() - this.#begunAt;
  }

  record(event: Event): void {
    this.events.push(event);
  }

  /** Writes an event a line. */
  save(file: string): void {
    mkdirSync(dirname(file), { recursive: true });
    const plain = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
    writeFileSync(file, this.events.map((event) => `${JSON.stringify(event, plain)}\n`).join(""));
  }
}

/** All events of a request. */
export interface RequestHistory {
  readonly ask: Ask;
  readonly submits: readonly Submit[];
  readonly endings: readonly Ended[];
  /** The endings that are outcomes, an ending for each time that the client read the outcome. */
  readonly outcomes: readonly (Ended & { kind: "ok" | "fail" })[];
}

export type Requests = ReadonlyMap<string, RequestHistory>;

/**
 * The histories of all requests, in the order of their first submission. Leaves out endings of
 * requests without a submission, because `noPhantom` looks for such endings.
 */
export function byRequest(events: readonly Event[]): Map<string, RequestHistory> {
  const found = new Map<
    string,
    { ask: Ask; submits: Submit[]; endings: Ended[]; outcomes: RequestHistory["outcomes"][number][] }
  >();
  for (const event of events) {
    if (event.kind === "submit") {
      const known = found.get(event.ask.request);
      if (known === undefined)
        found.set(event.ask.request, { ask: event.ask, submits: [event], endings: [], outcomes: [] });
      else known.submits.push(event);
      continue;
    }
    const known = found.get(event.request);
    known?.endings.push(event);
    if (event.kind !== "unknown") known?.outcomes.push(event);
  }
  return found;
}

/** The requests of each sequence, in step order. */
export function bySequence(requests: Iterable<RequestHistory>): Map<string, RequestHistory[]> {
  const found = new Map<string, RequestHistory[]>();
  for (const request of requests) {
    const { sequence } = request.ask;
    if (sequence === undefined) continue;
    const steps = found.get(sequence);
    if (steps === undefined) found.set(sequence, [request]);
    else steps.push(request);
  }
  for (const steps of found.values()) steps.sort((a, b) => (a.ask.step ?? 0) - (b.ask.step ?? 0));
  return found;
}
