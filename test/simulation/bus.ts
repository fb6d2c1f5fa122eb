/** NATS for the processes of a simulation, which may lose, delay and double messages. */
import type { Bus } from "#shared/nats/connect.js";
import type { Chaos } from "./chaos.js";
import type { Owner, Scheduler } from "./scheduler.js";

interface Interest {
  readonly owner: Owner;
  readonly handle: (message: Buffer) => void;
}

export class Nats {
  readonly #scheduler: Scheduler;
  readonly #chaos: Chaos;
  readonly #interests = new Map<string, Set<Interest>>();
  /** Processes without a connection to NATS. */
  readonly #down = new Set<Owner>();
  readonly #connections = new Map<Owner, number>();

  constructor(scheduler: Scheduler, chaos: Chaos) {
    this.#scheduler = scheduler;
    this.#chaos = chaos;
  }

  /** Cuts a process off for this long. */
  cut(owner: Owner, ms: number): void {
    this.#down.add(owner);
    this.#scheduler.plan(undefined, ms, "NATS is back", () => {
      this.#down.delete(owner);
      this.#connections.set(owner, this.#connectionsOf(owner) + 1);
    });
  }

  /** The bus of a process. */
  busOf(owner: Owner): Bus {
    const reached = () => !this.#down.has(owner);
    const none = () => Promise.reject(new Error("there is no JetStream in a simulation"));
    return {
      publish: (subject, message) => {
        if (reached()) this.#publish(subject, Buffer.from(message));
      },
      subscribe: (subject, handle) => {
        const interest = { owner, handle };
        const interests = this.#interests.get(subject) ?? new Set();
        this.#interests.set(subject, interests.add(interest));
        return Promise.resolve(() => interests.delete(interest));
      },
      store: none,
      jetStream: none,
      isUp: reached,
      connections: () => this.#connectionsOf(owner),
      maxBytes: () => 1_048_576,
      captures: false,
      close: () => Promise.resolve(),
    };
  }

  #connectionsOf(owner: Owner): number {
    return this.#connections.get(owner) ?? 1;
  }

  #publish(subject: string, message: Buffer): void {
    for (const { owner, handle } of this.#interests.get(subject) ?? []) {
      for (const ms of this.#chaos.deliveriesMs()) {
        this.#scheduler.plan(owner, ms, "a message arrives", () => {
          if (!this.#down.has(owner)) handle(message);
        });
      }
    }
  }
}
