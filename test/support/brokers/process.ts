/**
 * A real process in a process group of its own. A signal reaches a supervisor and its child alike,
 * and tests can wait for a line of output. No process that a test started outlives the test,
 * however the test ends.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createWriteStream, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";

export interface Launch {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** A file to which each line of standard output and standard error is appended. */
  readonly logFile: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A line of output. `fields` are the members of a JSON line, else empty. */
export interface LogLine {
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

type LineTest = (line: LogLine) => boolean;

const KEPT_LINES = 50_000;
const running = new Set<RunningProcess>();

process.on("exit", () => {
  for (const one of running) one.signalGroup("SIGKILL");
});

export class RunningProcess {
  readonly name: string;
  readonly pid: number;
  /**
   * Resolves when all processes of the group have closed their output, so a killed supervisor's
   * child has ended, too.
   */
  readonly exited: Promise<Exit>;
  /** The newest lines, up to 50,000, oldest first. */
  readonly lines: LogLine[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Set<(line: LogLine | Exit) => void>();
  #exit: Exit | undefined;

  constructor({ name, command, args, env, cwd, logFile }: Launch) {
    mkdirSync(dirname(logFile), { recursive: true });
    // Opens the file now, because a process that ends at once must not leave an open call behind
    // for a folder that no longer exists.
    const log = createWriteStream(logFile, { fd: openSync(logFile, "a") });
    this.name = name;
    this.#child = spawn(command, args, {
      cwd,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    this.pid = this.#child.pid ?? -1;
    running.add(this);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (text) => {
        log.write(`${text}\n`);
        this.#note({ text, fields: jsonFields(text) });
      });
    }
    this.exited = new Promise((resolve) => {
      const settle = (exit: Exit) => {
        if (this.#exit !== undefined) return;
        this.#exit = exit;
        running.delete(this);
        for (const waiter of this.#waiting) waiter(exit);
        log.end(() => resolve(exit));
      };
      this.#child.once("error", (error) => {
        this.#note({ text: error.message, fields: {} });
        settle({ code: -1, signal: null });
      });
      this.#child.once("close", (code, signal) => settle({ code, signal }));
    });
  }

  get alive(): boolean {
    return this.#exit === undefined;
  }

  /**
   * Resolves with the first line that passes `test`, past lines included.
   * @throws Error with the last output if the process exits or the time is up
   */
  async waitForLine(what: string, test: LineTest, timeoutMs = 60_000): Promise<LogLine> {
    const seen = this.lines.find(test);
    if (seen !== undefined) return seen;
    return new Promise((resolve, reject) => {
      const fail = (why: string) => {
        done();
        reject(new Error(`${this.name}: ${why} before "${what}"; last output:\n${this.tail()}`));
      };
      const waiter = (event: LogLine | Exit) => {
        if (!("text" in event)) return fail(`exited (${event.code ?? event.signal})`);
        if (!test(event)) return;
        done();
        resolve(event);
      };
      const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs);
      const done = () => {
        clearTimeout(timer);
        this.#waiting.delete(waiter);
      };
      if (this.#exit === undefined) this.#waiting.add(waiter);
      else fail("had exited");
    });
  }

  /** Waits for a JSON line with this `msg`. */
  waitForMessage(msg: string, timeoutMs?: number): Promise<LogLine> {
    return this.waitForLine(msg, (line) => line.fields["msg"] === msg, timeoutMs);
  }

  /**
   * Sends a signal to every process of the group.
   * @returns false if no process is left
   */
  signalGroup(signal: NodeJS.Signals): boolean {
    return this.#signal(-this.pid, signal);
  }

  /** Sends a signal to the process alone, as an orchestrator's SIGTERM goes to PID 1 alone. */
  signal(signal: NodeJS.Signals): boolean {
    return this.#signal(this.pid, signal);
  }

  /** Sends SIGKILL to the group. Resolves when all its processes have ended. */
  async kill(): Promise<Exit> {
    this.signalGroup("SIGKILL");
    return this.exited;
  }

  /** Sends SIGTERM to the process, and SIGKILL to the group after the grace period. */
  async terminate(graceMs = 10_000): Promise<Exit> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.signalGroup("SIGKILL"), graceMs);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }

  tail(count = 15): string {
    return this.lines
      .slice(-count)
      .map((line) => line.text.slice(0, 400))
      .join("\n");
  }

  #note(line: LogLine): void {
    this.lines.push(line);
    if (this.lines.length > KEPT_LINES) this.lines.splice(0, KEPT_LINES / 10);
    for (const waiter of this.#waiting) waiter(line);
  }

  #signal(target: number, signal: NodeJS.Signals): boolean {
    if (!this.alive || this.pid <= 0) return false;
    try {
      return process.kill(target, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
      throw error;
    }
  }
}

function jsonFields(text: string): Record<string, unknown> {
  if (!text.startsWith("{")) return {};
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {}; // a line cut by a SIGKILL; the caller keeps its text
  }
}
