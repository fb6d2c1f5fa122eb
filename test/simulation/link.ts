/**
 * A process's connection to Redis: a client of ioredis in all but the socket. Its commands travel
 * to the simulated server and back as the run's chaos decides.
 */
import { Redis, type Command } from "ioredis";
import type { Call, Result } from "#shared/redis/transaction.js";
import type { Chaos } from "./chaos.js";
import type { Fault } from "./faults.js";
import type { Owner, Scheduler } from "./scheduler.js";
import type { Line, Server } from "./server.js";
import type { Trace } from "./trace.js";

/** As in shared/redis/connect.ts. */
const COMMAND_TIMEOUT_MS = 2_500;

/** The parts that all processes of a run share. */
export interface Stage {
  readonly scheduler: Scheduler;
  readonly server: Server;
  readonly chaos: Chaos;
  readonly trace: Trace;
  /** The fault that the run has by hand; undefined for the unchanged product. */
  readonly fault: Fault | undefined;
}

/** Commands that the process sent in one piece: a single command, or a pipeline. */
interface Piece {
  readonly number: number;
  readonly commands: Command[];
  /** Of ioredis: an object that all commands of a pipeline share. */
  readonly pipeline: unknown;
  isOver: boolean;
}

export class Link extends Redis {
  readonly #stage: Stage;
  readonly #owner: Owner;
  readonly #label: string;
  readonly #blocks: boolean;
  #line: Line | undefined;
  #pieces: Piece[] = [];
  #last: Piece | undefined;
  #sent = 0;
  /**
   * When the last piece arrives there, and when the last reply arrives here. A connection keeps its
   * order.
   */
  #arrives = { there: 0, here: 0 };
  /** The part of a socket that the product reads. Each connection has its own. */
  #socket = { bytesRead: 0 };

  /** @param blocks whether the link is for blocking reads, whose commands have no time limit */
  constructor(stage: Stage, owner: Owner, label: string, blocks = false) {
    super({ lazyConnect: true, enableOfflineQueue: false });
    this.setMaxListeners(0);
    this.#stage = stage;
    this.#owner = owner;
    this.#label = `${owner.name}/${label}`;
    this.#blocks = blocks;
    this.status = "connecting";
    this.#connectIn(stage.chaos.connectMs());
  }

  override sendCommand(command: Command, pipeline?: unknown): unknown {
    const line = this.#line;
    if (this.status !== "ready" || line === undefined) {
      command.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
      return command.promise;
    }
    const last = this.#last;
    if (pipeline !== undefined && last?.pipeline === pipeline) {
      last.commands.push(command);
      return command.promise;
    }
    const piece: Piece = { number: ++this.#sent, commands: [command], pipeline, isOver: false };
    this.#last = piece;
    this.#pieces.push(piece);
    const { scheduler } = this.#stage;
    if (!this.#blocks) scheduler.plan(this.#owner, COMMAND_TIMEOUT_MS, "command timeout", () => this.#timeOut(piece));
    // The rest of a pipeline comes within this turn.
    queueMicrotask(() => this.#travel(line, piece));
    return command.promise;
  }

  override disconnect(reconnect = false): void {
    this.#drop("disconnected by the process", reconnect);
  }

  /** Breaks the connection. */
  cut(why: string): void {
    if (this.status === "ready") this.#drop(why, true);
  }

  /** The process has died, and the kernel closes its socket. */
  die(): void {
    const { scheduler, server } = this.#stage;
    const line = this.#line;
    this.#line = undefined;
    this.status = "end";
    // Calls that the process has sent before still arrive.
    if (line !== undefined) {
      const ms = this.#arrives.there - scheduler.now + 0.01;
      scheduler.plan(undefined, ms, "the server notices", () => server.close(line));
    }
  }

  #connectIn(ms: number): void {
    const { scheduler, chaos } = this.#stage;
    scheduler.plan(this.#owner, ms, "connect", () => {
      if (this.status !== "connecting" && this.status !== "reconnecting") return;
      if (chaos.isServerAway(this.#owner.name)) return this.#connectIn(chaos.connectMs());
      this.#arrives = { there: 0, here: 0 };
      const line = this.#stage.server.open(this.#label, (results) => this.#bringLater(line, results));
      this.#line = line;
      this.#socket = { bytesRead: 0 };
      this.stream = this.#socket as never;
      this.status = "ready";
      this.#stage.trace.note(this.#label, `connected as ${line.id}`);
      this.emit("ready");
    });
  }

  #travel(line: Line, piece: Piece): void {
    const { scheduler, server, chaos, trace } = this.#stage;
    const calls = piece.commands.map(callOf);
    const fate = chaos.fateOf(this.#owner.name, server.namesOf(calls));
    this.#arrives.there = Math.max(this.#arrives.there, scheduler.now + fate.thereMs);
    this.#goAhead(line, calls);
    if (fate.kind === "cut off") {
      trace.note(this.#label, `#${piece.number} ${server.namesOf(calls).join("+")} is cut off`);
      scheduler.plan(this.#owner, fate.noticedMs, "cut", () => this.#cutFrom(line, "cut before a call"));
      return;
    }
    const late = fate.kind === "late" ? fate.lateMs : 0;
    // A late call travels on although its connection no longer exists.
    scheduler.plan(undefined, this.#arrives.there - scheduler.now + late, "a call arrives", async () => {
      if (!line.isOpen && fate.kind !== "late") return;
      const ran = await server.run(line, calls);
      if (ran === undefined) return;
      trace.note(
        this.#label,
        `#${piece.number} ${ran.names.join("+")}${late > 0 ? " LATE" : ""} -> ${digestOf(ran.results)}`,
      );
      await chaos.onRan(ran);
      if (fate.kind === "answered") this.#bringLater(line, ran.results, piece, fate.hereMs);
      else trace.note(this.#label, `#${piece.number} loses its reply`);
    });
    if (fate.kind !== "answered") {
      scheduler.plan(this.#owner, fate.noticedMs, "cut", () => this.#cutFrom(line, `cut during #${piece.number}`));
    }
  }

  /** Sends the calls that a fault puts before these calls. */
  #goAhead(line: Line, calls: readonly Call[]): void {
    const { scheduler, server, fault } = this.#stage;
    const names = server.namesOf(calls);
    const ahead = calls.flatMap((call, i) => fault?.ahead?.(names[i] ?? "", call) ?? []);
    if (ahead.length > 0)
      scheduler.plan(undefined, 0, "a call arrives", async () => void (await server.run(line, ahead)));
  }

  /**
   * @param given the piece to answer; by default the piece that has waited longest, which blocks
   */
  #bringLater(line: Line, results: readonly Result[], given?: Piece, ms = this.#stage.chaos.latencyMs()): void {
    const { scheduler } = this.#stage;
    const piece = given ?? this.#pieces[0];
    if (piece === undefined || this.#line !== line) return;
    this.#arrives.here = Math.max(this.#arrives.here, scheduler.now + ms);
    scheduler.plan(this.#owner, this.#arrives.here - scheduler.now, "a reply arrives", () => {
      if (this.#line !== line || piece.isOver) return;
      this.#end(piece);
      this.#socket.bytesRead++;
      for (const [i, command] of piece.commands.entries()) {
        const [error, reply] = results[i] ?? [new Error("no result")];
        if (error !== null) command.reject(error);
        else command.resolve(reply);
      }
    });
  }

  #timeOut(piece: Piece): void {
    if (piece.isOver) return;
    this.#end(piece);
    for (const command of piece.commands) command.reject(new Error("Command timed out"));
  }

  #end(piece: Piece): void {
    piece.isOver = true;
    this.#pieces = this.#pieces.filter((one) => one !== piece);
  }

  #cutFrom(line: Line, why: string): void {
    if (this.#line === line) this.#drop(why, true);
  }

  #drop(why: string, reconnect: boolean): void {
    const { scheduler, server, chaos, trace } = this.#stage;
    const line = this.#line;
    this.#line = undefined;
    this.status = reconnect ? "reconnecting" : "end";
    if (line !== undefined) {
      trace.note(this.#label, `connection ${line.id}: ${why}`);
      scheduler.plan(undefined, chaos.serverNoticesMs(), "the server notices", () => server.close(line));
    }
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#last = undefined;
    for (const piece of pieces) {
      piece.isOver = true;
      for (const command of piece.commands) command.reject(new Error("Connection is closed."));
    }
    if (line !== undefined) this.emit("close");
    if (reconnect && line !== undefined) this.#connectIn(chaos.connectMs());
  }
}

function callOf({ name, args }: Command): Call {
  return [name, ...(args as readonly (string | Buffer)[])];
}

/** A short text that tells replies apart. */
function digestOf(results: readonly Result[]): string {
  const text = results.map(([error, reply]) => (error === null ? printed(reply) : error.message)).join(" ");
  return text.length <= 300 ? text : `${text.slice(0, 300)}… (${text.length})`;
}

function printed(reply: unknown): string {
  if (Buffer.isBuffer(reply))
    return reply.length <= 120 ? JSON.stringify(reply.toString("latin1")) : `${reply.length} bytes`;
  if (Array.isArray(reply)) return `[${(reply as unknown[]).map(printed).join(",")}]`;
  return reply instanceof Error ? reply.message : String(reply);
}
