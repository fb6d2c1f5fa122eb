/**
 * The bodies of one connection are handed on in the order in which its client has sent them,
 * although a short one is read sooner than a long one before it: so the steps of a sequence that a
 * client sends one behind the other are admitted in that order.
 */
import type { Socket } from "node:net";

export class BodyOrder {
  /** The bodies of each connection that were not handed on yet, oldest first. */
  readonly #lines = new WeakMap<Socket, Turn[]>();

  /** To be called in the turn of the event loop in which the request has come. */
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

  /** Resolves when all earlier bodies of the connection have been handed on, or refused. */
  come(): Promise<void> {
    return this.hasCome ? Promise.resolve() : new Promise((resolve) => (this.#onCome = resolve));
  }

  /** The body is handed on now, or was refused. */
  pass(): void {
    const place = this.#line.indexOf(this);
    // What follows from this body in promises has happened before the next one is handed on.
    if (place === 0 && this.#line.length > 1) setImmediate(() => this.#leave());
    else if (place >= 0) this.#line.splice(place, 1);
  }

  #leave(): void {
    this.#line.shift();
    const [next] = this.#line;
    if (next !== undefined) next.#onCome?.();
  }
}
