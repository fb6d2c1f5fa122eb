/**
 * The attempts and answers of all clients, in order. Every attempt is a `submit` and exactly
 * one ending. The ending `unknown` means that the client cannot tell whether the request took
 * effect.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { ErrorCode } from "#shared/errors.js";

/** A request. All attempts of a request have the same ask. */
export interface Ask {
  /** The `Idempotency-Key` and the body's `id`, unique in a history. */
  readonly request: string;
  readonly model: string;
  /** The tenant of the request, if clients name a tenant; else absent for the default tenant. */
  readonly tenant?: string;
  /** The label of the sequence; absent for a stateless request. */
  readonly sequence?: string;
  /** Counted from 1, in the order in which the client asks. */
  readonly step?: number;
  /** A client sends the steps of a burst at the same time, so any order among them is right. */
  readonly burst?: number;
  /** The input of a chain model. */
  readonly input?: bigint;
  /** The only right output, if the output depends on the request alone. */
  readonly answer?: string;
  readonly start?: boolean;
  readonly end?: boolean;
  /**
   * The error code that is the right outcome of poison, and of the step after poison. If absent, a
   * result is right.
   */
  readonly expects?: ErrorCode;
  /**
   * Errors that are right outcomes, too, if the request then has had no effect: its deadline is
   * short, or the queue of its level.
   */
  readonly mayFail?: readonly ErrorCode[];
  /** The request names the number of its step, so the steps of a burst take effect in their order. */
  readonly numbered?: true;
  /** The request has no key, so its client cannot ask again for an outcome that did not arrive. */
  readonly unkeyed?: true;
}

/** @param said an error's code, or `ok` */
export function isRight({ expects, mayFail }: Ask, said: string): boolean {
  return said === (expects ?? "ok") || (mayFail as readonly string[] | undefined)?.includes(said) === true;
}

export type Ending =
  | {
      readonly kind: "ok";
      readonly output: string;
      readonly echoedId: string | undefined;
      /** The version of the model that answered, if the answer names a version. */
      readonly version?: string;
    }
  | {
      readonly kind: "fail";
      readonly status: number;
      readonly code: string;
      /** No gateway took the request, and its client leaves it at that. */
      readonly refused?: true;
    }
  | {
      readonly kind: "unknown";
      readonly why: string;
      /** The error of a gateway that did not take the request. */
      readonly refusal?: ErrorCode;
    };

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
