/**
 * A tenant that floods a gateway: all requests at once, pipelined over many connections, with as
 * little work as possible on this side. A flood that ends early begins again until its time is
 * over.
 */
import { connect, type Socket } from "node:net";
import { newKey } from "../../../gateway/auth/key.js";
import { simpleBody } from "../../jobs/ask.js";
import { serveJob } from "../support/child.js";

export const floods = ["requests", "generations", "bodies", "guesses"] as const;
export type FloodKind = (typeof floods)[number];

export interface FloodJob {
  readonly kind: FloodKind;
  readonly port: number;
  readonly key: string;
  readonly measureMs: number;
}

export interface FloodResult {
  /** How often each status was answered. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Share of a core that this process used. */
  readonly cpuShare: number;
}

interface Shape {
  readonly connections: number;
  /** Requests of a connection at a time. */
  readonly each: number;
  readonly request: () => Buffer;
}

function post(path: string, key: string, body: Buffer): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** Of a body, in bytes: 25 of them come to 200 MB. */
const LARGE = 8_000_000;
const GUESSES = 100_000;

function shapeOf({ kind, key }: FloodJob): Shape {
  const simple = Buffer.from(JSON.stringify(simpleBody(1)));
  switch (kind) {
    case "requests": {
      const request = post("/v2/models/simple/infer", key, simple);
      return { connections: 500, each: 40, request: () => request };
    }
    case "generations": {
      const body = { model: "gen-mha", prompt: "a lap", max_tokens: 30, ignore_eos: true };
      const request = post("/v1/completions", key, Buffer.from(JSON.stringify(body)));
      return { connections: 300, each: 10, request: () => request };
    }
    case "bodies": {
      const request = post("/v2/models/simple/infer", key, Buffer.alloc(LARGE, " "));
      return { connections: 25, each: 1, request: () => request };
    }
    case "guesses": {
      const guesses = Array.from({ length: GUESSES }, () => post("/v2/models/simple/infer", newKey().text, simple));
      let next = 0;
      return { connections: 64, each: 16, request: () => guesses[next++ % GUESSES] ?? Buffer.alloc(0) };
    }
  }
}

/** A connection that sends anew what it has had answers to. */
class Flooding {
  readonly #shape: Shape;
  readonly #statuses: Map<string, number>;
  readonly #port: number;
  #socket: Socket | undefined;
  #open = 0;
  /** The end of the last piece, in which a status line may have begun. */
  #tail = "";

  constructor(shape: Shape, port: number, statuses: Map<string, number>) {
    this.#shape = shape;
    this.#port = port;
    this.#statuses = statuses;
    this.#connect();
  }

  stop(): void {
    this.#socket?.removeAllListeners("close").destroy();
  }

  #connect(): void {
    this.#open = 0;
    this.#tail = "";
    const socket = connect({ port: this.#port, host: "127.0.0.1" }, () => this.#fill());
    socket.on("data", (piece) => this.#count(piece));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#note("closed");
      setTimeout(() => this.#connect(), 10);
    });
    this.#socket = socket;
  }

  #fill(): void {
    for (; this.#open < this.#shape.each; this.#open++) this.#socket?.write(this.#shape.request());
  }

  #count(piece: Buffer): void {
    const text = this.#tail + piece.toString("latin1");
    let end = 0;
    for (const match of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
      this.#note(match[1] ?? "");
      this.#open--;
      end = match.index + match[0].length;
    }
    this.#tail = text.slice(Math.max(end, text.length - 11));
    this.#fill();
  }

  #note(status: string): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
  }
}

await serveJob(async (job: FloodJob, measuring): Promise<FloodResult> => {
  const shape = shapeOf(job);
  const statuses = new Map<string, number>();
  const before = process.cpuUsage();
  const begun = performance.now();
  const flooding = Array.from({ length: shape.connections }, () => new Flooding(shape, job.port, statuses));
  measuring();
  await new Promise((resolve) => setTimeout(resolve, job.measureMs));
  const { user, system } = process.cpuUsage(before);
  const cpuShare = (user + system) / 1_000 / (performance.now() - begun);
  for (const one of flooding) one.stop();
  return { statuses: Object.fromEntries(statuses), cpuShare };
});
