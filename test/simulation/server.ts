/**
 * A single real redis-server behind the connections of a simulation's processes: call after call,
 * each at a simulated time. All calls share a single real connection, so this class itself does the
 * work that belongs to connections: it lists the clients, and blocks reads.
 */
import { createHash } from "node:crypto";
import type { Redis } from "ioredis";
import type { Call, Result } from "#shared/redis/transaction.js";
import { Scripts, TIME_KEY, type Replacement } from "./scripts.js";
import type { Scheduler } from "./scheduler.js";

/** Simulated Redis ms at the beginning of a run. */
const EPOCH_MS = 1_700_000_000_000;

/** A connection, from the server's side. */
export interface Line {
  readonly id: number;
  readonly name: string;
  isOpen: boolean;
  /** Takes the results of a blocked read. */
  readonly answer: (results: readonly Result[]) => void;
}

interface Blocked {
  readonly line: Line;
  readonly call: Call;
  readonly cancel: () => void;
}

/** The scripts and commands of a call, and their results, for watchers of the run. */
export interface Ran {
  readonly names: readonly string[];
  readonly results: readonly Result[];
}

export class Server {
  readonly #real: Redis;
  readonly #scheduler: Scheduler;
  readonly #scripts: Scripts;
  /** The script to call instead, by the digest that the product knows. */
  readonly #known = new Map<string, { readonly name: string; readonly sha: string }>();
  readonly #lines = new Map<number, Line>();
  #blocked: Blocked[] = [];
  #lastMicros = 0;
  #ids = 0;

  /** @param real a connection to an empty server */
  constructor(real: Redis, scheduler: Scheduler, faults: readonly Replacement[]) {
    this.#real = real;
    this.#scheduler = scheduler;
    this.#scripts = new Scripts(faults);
  }

  open(name: string, answer: Line["answer"]): Line {
    const line = { id: ++this.#ids, name, isOpen: true, answer };
    this.#lines.set(line.id, line);
    return line;
  }

  /** The server hears that the connection has closed. */
  close(line: Line): void {
    line.isOpen = false;
    this.#lines.delete(line.id);
    for (const { line: other, cancel } of this.#blocked) if (other === line) cancel();
    this.#blocked = this.#blocked.filter((one) => one.line !== line);
  }

  /**
   * Runs the calls of a single piece.
   * @returns undefined if the read blocks, and gets its answer later
   */
  async run(line: Line, calls: readonly Call[]): Promise<Ran | undefined> {
    const names: string[] = [];
    const own = this.#answerItself(line, calls);
    if (own !== undefined) return { names: [String(calls[0]?.[0])], results: [[null, own]] };
    const [first] = calls;
    const blocks = calls.length === 1 && first !== undefined && first[0].toUpperCase() === "XREADGROUP";
    const blockAt = blocks ? first.indexOf("BLOCK") : -1;
    const sent: Call[] = [];
    for (const call of calls) {
      const { name, call: translated } = await this.#translate(call);
      names.push(name);
      sent.push(translated);
    }
    if (blockAt > 0 && first !== undefined) sent[0] = without(first, blockAt);
    const results = await this.#send(sent);
    const [one] = results;
    if (blockAt > 0 && first !== undefined && one?.[0] === null && one[1] === null) {
      const cancel = this.#scheduler.plan(undefined, Number(first[blockAt + 1]), "a read blocks", () => {
        this.#unblock(line, null);
      });
      this.#blocked.push({ line, call: sent[0] ?? first, cancel });
      return undefined;
    }
    return {
      names,
      results: results.map((result, i) => (names[i]?.toUpperCase() === "XPENDING" ? idleless(result) : result)),
    };
  }

  /**
   * The names of the calls' scripts, as far as the server knows these scripts, or of their
   * commands.
   */
  namesOf(calls: readonly Call[]): string[] {
    return calls.map(([command, text]) => {
      return /^EVALSHA(?:_RO)?$/i.test(command) ? (this.#known.get(String(text))?.name ?? "script") : command;
    });
  }

  /** Lets a watcher of the run read, in no process's name, and unseen by the simulation. */
  get real(): Redis {
    return this.#real;
  }

  async #send(calls: readonly Call[]): Promise<Result[]> {
    const pipeline = this.#real.pipeline();
    pipeline.callBuffer("SET", [TIME_KEY, this.#micros()]);
    for (const [command, ...args] of calls) pipeline.callBuffer(command, args);
    const blocked = this.#blocked;
    // New entries go to the blocked read that has waited longest.
    for (const { call } of blocked) pipeline.callBuffer(call[0], call.slice(1));
    const results = (await pipeline.exec()) as Result[] | null;
    if (results === null) throw new Error("the real server has not answered");
    for (const [i, { line }] of blocked.entries()) {
      const found = results[1 + calls.length + i];
      if (found !== undefined && (found[0] !== null || found[1] !== null)) this.#unblock(line, found);
    }
    return results.slice(1, 1 + calls.length);
  }

  #unblock(line: Line, found: Result | null): void {
    const one = this.#blocked.find((blocked) => blocked.line === line);
    if (one === undefined) return;
    one.cancel();
    this.#blocked = this.#blocked.filter((blocked) => blocked !== one);
    line.answer([found ?? [null, null]]);
  }

  /** Answers calls about connections and about time. */
  #answerItself(line: Line, calls: readonly Call[]): unknown {
    const [call] = calls;
    if (call === undefined || calls.length > 1) return undefined;
    const [command, ...args] = call.map((one) => (Buffer.isBuffer(one) ? "" : String(one).toUpperCase()));
    if (command === "TIME") {
      const micros = this.#micros();
      return [Math.floor(micros / 1_000_000), micros % 1_000_000].map((part) => Buffer.from(String(part)));
    }
    if (command === "INFO" && args[0] === "SERVER") return Buffer.from("run_id:simulated\r\n");
    if (command !== "CLIENT") return undefined;
    if (args[0] === "ID") return line.id;
    if (args[0] === "LIST") {
      const there = args.slice(2).filter((id) => this.#lines.has(Number(id)));
      return Buffer.from(there.map((id) => `id=${id} addr=\n`).join(""));
    }
    if (args[0] !== "UNBLOCK") return undefined;
    const blocked = this.#blocked.find(({ line }) => line.id === Number(args[1]));
    if (blocked !== undefined) this.#unblock(blocked.line, null);
    return blocked === undefined ? 0 : 1;
  }

  async #translate(call: Call): Promise<{ name: string; call: Call }> {
    const [command, text, ...rest] = call;
    const upper = command.toUpperCase().replace(/_RO$/, "");
    if (upper === "EVALSHA") {
      const known = this.#known.get(String(text));
      return known === undefined
        ? { name: "unknown script", call }
        : { name: known.name, call: ["EVALSHA", known.sha, ...rest] };
    }
    if (upper !== "EVAL") return { name: command, call };
    const { name, source } = this.#scripts.translate(String(text));
    const sha = String(await this.#real.script("LOAD", source));
    this.#known.set(createHash("sha1").update(String(text)).digest("hex"), { name, sha });
    return { name, call: ["EVALSHA", sha, ...rest] };
  }

  /** No two calls run at the same µs, as a real server is never so fast. */
  #micros(): number {
    const micros = Math.floor((EPOCH_MS + this.#scheduler.now) * 1_000);
    this.#lastMicros = Math.max(this.#lastMicros + 1, micros);
    return this.#lastMicros;
  }
}

/**
 * Replaces each entry's pending time by 0, because that time follows the real server's clock.
 * Nothing depends on the pending time.
 */
function idleless([error, reply]: Result): Result {
  if (!Array.isArray(reply) || !reply.every(Array.isArray)) return [error, reply];
  return [error, (reply as unknown[][]).map(([entry, consumer, , deliveries]) => [entry, consumer, 0, deliveries])];
}

function without(call: Call, at: number): Call {
  const [command, ...args] = call;
  return [command, ...args.slice(0, at - 1), ...args.slice(at + 1)];
}
