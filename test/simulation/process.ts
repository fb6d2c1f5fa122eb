/** A process of a simulation: the parts that all processes have, and how processes end. */
import type { Logger } from "pino";
import type { World } from "#shared/world.js";
import type { Random } from "../support/fleet/random.js";
import type { Nats } from "./bus.js";
import { Link, type Stage } from "./link.js";
import { Owner, worldOf } from "./scheduler.js";

/** The parts of a run beside its processes. */
export interface Setting extends Stage {
  readonly nats: Nats;
  readonly buckets: number;
  readonly leaseMs: number;
  readonly shortScripts: boolean;
}

export class Process {
  readonly owner: Owner;
  readonly world: World;
  readonly setting: Setting;
  readonly log: Logger;
  readonly #links: Link[] = [];
  readonly #ends = new Set<() => void>();

  constructor(setting: Setting, name: string, random: Random) {
    this.setting = setting;
    this.owner = new Owner(name);
    this.world = worldOf(this.owner, setting.scheduler, random.fork(name));
    this.log = logOf(name, setting);
  }

  get name(): string {
    return this.owner.name;
  }

  /** Opens a connection to Redis. */
  connect(label: string, blocks = false): Link {
    const link = new Link(this.setting, this.owner, label, blocks);
    this.#links.push(link);
    return link;
  }

  /** Ends at once, as with SIGKILL. */
  kill(): void {
    if (this.owner.isDead) return;
    this.setting.trace.note(this.name, "KILLED");
    this.owner.isDead = true;
    this.owner.held = undefined;
    for (const link of this.#links) link.die();
    for (const end of this.#ends) end();
  }

  /** Does nothing for this long, and then continues as if nothing had happened. */
  freeze(ms: number): void {
    const { scheduler, trace } = this.setting;
    if (this.owner.isDead || this.owner.held !== undefined) return;
    trace.note(this.name, `FROZEN for ${Math.round(ms)} ms`);
    scheduler.freeze(this.owner);
    scheduler.plan(undefined, ms, "thaw", () => {
      if (!this.owner.isDead) trace.note(this.name, "THAWED");
      scheduler.thaw(this.owner);
    });
  }

  /** Breaks all connections of the process to Redis. */
  cut(): void {
    for (const link of this.#links) link.cut("cut by the plan");
  }

  /**
   * Calls `end` when the process dies.
   * @returns a function that takes the call back
   */
  onEnd(end: () => void): () => void {
    this.#ends.add(end);
    return () => this.#ends.delete(end);
  }
}

/** A log that writes the product's lines into the trace. */
function logOf(name: string, { trace }: Setting): Logger {
  const write = (level: string) => (facts: unknown, line?: string) => {
    trace.note(name, `${level}: ${line ?? ""} ${JSON.stringify(facts)}`);
  };
  const log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return log as unknown as Logger;
}
