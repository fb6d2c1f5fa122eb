/**
 * The faults of a run that calls and messages meet on their way. The seed decides all of them:
 * first the weather of the run, then the fate of each call. Some runs lose nothing, some nearly
 * everything.
 */
import type { Random } from "../support/fleet/random.js";
import type { Scheduler } from "./scheduler.js";
import type { Ran } from "./server.js";

/** How often each fault happens; rates are from 0 to 1. */
export interface Weather {
  /** The connection breaks before the call, which never arrives. */
  readonly cutOff: number;
  /** The connection breaks, and the reply is lost. */
  readonly lostReply: number;
  /** The connection breaks, and the call arrives long after its caller has repeated the call. */
  readonly late: number;
  /** A call, or a reply, takes long. */
  readonly slow: number;
  readonly nats: { readonly lose: number; readonly delay: number; readonly double: number };
}

export interface Fate {
  readonly kind: "answered" | "cut off" | "reply lost" | "late";
  /** How long the way there and back takes, in ms. */
  readonly thereMs: number;
  readonly hereMs: number;
  /** How long after sending the caller notices that the connection is broken. */
  readonly noticedMs: number;
  /** How much later than due the call arrives. */
  readonly lateMs: number;
}

/** Calls so frequent that they would meet most faults. */
const OFTEN = /heartbeat|HGET|SET|LPOP|TIME|EXISTS|read-fleet|write-refusal|recount|reap-kept|GET/;

export class Chaos {
  readonly #random: Random;
  readonly #scheduler: Scheduler;
  readonly #weather: Weather;
  /** Processes without a way to the server, and until when. */
  readonly #away = new Map<string, number>();
  #isCalm = false;
  readonly onRan: (ran: Ran) => Promise<void>;

  constructor(random: Random, scheduler: Scheduler, weather: Weather, onRan: (ran: Ran) => Promise<void>) {
    this.#random = random;
    this.#scheduler = scheduler;
    this.#weather = weather;
    this.onRan = onRan;
  }

  /** From now on, everything arrives. */
  calm(): void {
    this.#isCalm = true;
  }

  /** Keeps the process away from the server for this long. */
  keepAway(process: string, ms: number): void {
    this.#away.set(process, this.#scheduler.now + ms);
  }

  isServerAway(process: string): boolean {
    return !this.#isCalm && this.#scheduler.now < (this.#away.get(process) ?? 0);
  }

  latencyMs(): number {
    const random = this.#random;
    if (!this.#isCalm && random.chance(this.#weather.slow)) return 5 + 400 * random.unit() ** 3;
    return 0.05 + random.unit() * (random.chance(0.1) ? 5 : 0.7);
  }

  connectMs(): number {
    return 5 + this.#random.unit() * 120;
  }

  serverNoticesMs(): number {
    return this.#random.chance(0.5) ? 1 : this.#random.unit() * 1_500;
  }

  fateOf(process: string, names: readonly string[]): Fate {
    const random = this.#random;
    const { cutOff, lostReply, late } = this.#weather;
    const share = names.every((name) => OFTEN.test(name)) ? 0.1 : 1;
    const lot = this.#isCalm ? 1 : random.unit() / share;
    const [thereMs, hereMs] = [this.latencyMs(), this.latencyMs()];
    const noticedMs = thereMs + random.unit() * (random.chance(0.3) ? 2_000 : 20);
    const lateMs = random.unit() * (random.chance(0.5) ? 100 : 4_000);
    const kind = this.isServerAway(process)
      ? "cut off"
      : lot < cutOff
        ? "cut off"
        : lot < cutOff + lostReply
          ? "reply lost"
          : lot < cutOff + lostReply + late
            ? "late"
            : "answered";
    return { kind, thereMs, hereMs, noticedMs, lateMs };
  }

  /** After which times in ms a message arrives: mostly a single time. */
  deliveriesMs(): number[] {
    const random = this.#random;
    const once = () => 0.1 + random.unit() * (this.#isCalm || !random.chance(delay) ? 0.5 : 300);
    const { lose, delay, double } = this.#weather.nats;
    if (this.#isCalm) return [once()];
    if (random.chance(lose)) return [];
    return random.chance(double) ? [once(), once()] : [once()];
  }
}
