/**
 * Hands on the bodies of one connection in the order in which the client sent them, although a
 * short body is ready sooner than a long body before it. So a client may send the steps of a
 * sequence one behind the other, and the gateway admits them in that order.
 */
import type { Socket } from "node:net";

export class BodyOrder {
  /** The bodies of each connection that still wait, oldest first. */
  readonly #lines = new WeakMap<Socket, Turn[]>();

  /** Call this in the turn of the event loop in which the request arrives. */
  enter(socket: Socket): Turn {
    let line = this.#lines.get(socket);
    if (line === undefined) this.#lines.set(socket, (line = []));
    const turn = new Turn(line);
    line.push(turn);
    return turn;
  }
}

export class Turn {
  readonly #line: Turn[];
  #onCome: (() => void) | undefined;

  constructor(line: Turn[]) {
    this.#line = line;
  }

  get hasCome(): boolean {
    return this.#line[0] === this;
  }

  /** Resolves when all earlier bodies of the connection have been handed on or refused. */
  come(): Promise<void> {
    return this.hasCome ? Promise.resolve() : new Promise((resolve) => (this.#onCome = resolve));
  }

  /** Call this when the body is handed on or refused. */
  pass(): void {
    const place = this.#line.indexOf(this);
    // All promises that follow from this body settle before the next body has its turn.
    if (place === 0 && this.#line.length > 1) setImmediate(() => this.#leave());
    else if (place >= 0) this.#line.splice(place, 1);
  }

  #leave(): void {
    this.#line.shift();
    const [next] = this.#line;
    if (next !== undefined) next.#onCome?.();
  }
}
