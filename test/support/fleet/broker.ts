/**
 * A broker keeps its port and its data when it is killed: when it comes back, it is the same
 * server, restarted.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onFreePort } from "./port.js";
import { RunningProcess } from "./process.js";

export interface Broker {
  readonly port: number;
  readonly process: RunningProcess;
  /** Sends SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port and folder. Resolves when it answers. */
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Kills it, and removes its folder if it is its own. */
  dispose(): Promise<void>;
}

/** What one kind of broker is: its program, its arguments, and the line that says it is up. */
export interface BrokerKind {
  readonly name: string;
  readonly command: string;
  readonly argumentsFor: (port: number, folder: string) => readonly string[];
  readonly ready: RegExp;
}

/** @param given where its data and log go; without it they go to a folder of its own */
export async function startBroker(kind: BrokerKind, given?: string): Promise<Broker> {
  const { name, command, argumentsFor, ready } = kind;
  const folder = given ?? mkdtempSync(join(tmpdir(), `baton-${name}-`));
  const logFile = join(folder, `${name}.log`);

  async function start(port: number): Promise<RunningProcess> {
    const started = new RunningProcess({ name, command, args: argumentsFor(port, folder), logFile });
    try {
      await started.waitForLine(ready.source, (line) => ready.test(line.text));
      return started;
    } catch (error) {
      await started.kill();
      throw error;
    }
  }

  const { port, first } = await onFreePort(async (port) => ({ port, first: await start(port) }));
  let current = first;
  return {
    port,
    get process() {
      return current;
    },
    async kill() {
      await current.kill();
    },
    async restart() {
      if (current.alive) throw new Error(`${current.name} is still running`);
      current = await start(port);
    },
    freeze: () => void current.signalGroup("SIGSTOP"),
    thaw: () => void current.signalGroup("SIGCONT"),
    async dispose() {
      await current.kill();
      if (given === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
