/**
 * What the clients did and saw, in order: the only evidence that the checker takes. Every HTTP attempt is a `submit` and exactly one
 * ending; `unknown` means that the client cannot tell whether the request took effect.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ErrorCode } from "#shared/errors.js";

/** What is asked; the same for all attempts of a request. */
export interface Ask {
  /** The `Idempotency-Key`, and the body's `id`: unique in a history. */
  readonly request: string;
  readonly model: string;
  /** The label of the sequence; absent for a stateless request. */
  readonly sequence?: string;
  /** From 1, in the order in which the client asks. */
  readonly step?: number;
  /** Steps of one burst were sent at the same time: any order among them is right. */
  readonly burst?: number;
  /** Of the chain models. */
  readonly input?: bigint;
  /** The one right output, where it depends on nothing but the request. */
  readonly answer?: string;
  readonly start?: boolean;
  readonly end?: boolean;
  /** The error code that is the right outcome: of poison, and of what follows it. Absent: a result is. */
  readonly expects?: ErrorCode;
}

export type Ending =
  | { readonly kind: "ok"; readonly output: string; readonly echoedId: string | undefined }
  | { readonly kind: "fail"; readonly status: number; readonly code: string }
  | { readonly kind: "unknown"; readonly why: string };

interface Stamp {
  /** ms since the history began */
  readonly at: number;
  readonly client: string;
  readonly attempt: number;
}

export type Submit = Stamp & { readonly kind: "submit"; readonly gateway: string; readonly ask: Ask };
export type Ended = Stamp & { readonly request: string } & Ending;
export type Event = Submit | Ended;

export class History {
  readonly events: Event[] = [];
  readonly #begunAt = performance.now();

  now(): number {
    return performance.now() - this.#begunAt;
  }

  record(event: Event): void {
    this.events.push(event);
  }

  /** One event a line. */
  save(file: string): void {
    mkdirSync(dirname(file), { recursive: true });
    const plain = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
    writeFileSync(file, this.events.map((event) => `${JSON.stringify(event, plain)}\n`).join(""));
  }
}

/** All that happened to one request. */
export interface RequestHistory {
  readonly ask: Ask;
  readonly submits: readonly Submit[];
  readonly endings: readonly Ended[];
  /** Endings that are outcomes: what the client was told, once per reading. */
  readonly outcomes: readonly (Ended & { kind: "ok" | "fail" })[];
}

/** By request, in the order of first submission. Endings of requests that were never submitted are left out (see I3). */
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
