/**
 * A broker that a test can kill and restart, like a restarted server: with the same port and the
 * same data.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onFreePort } from "./port.js";
import { RunningProcess } from "./process.js";

export interface Broker {
  readonly port: number;
  readonly process: RunningProcess;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /**
   * Starts the broker again after `kill`, on the same port and folder. Resolves when the broker
   * answers.
   */
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Kills the broker, and removes its folder unless the caller gave the folder. */
  dispose(): Promise<void>;
}

/**
 * A kind of broker: its program, the arguments, and the line of output that says the broker is up.
 */
export interface BrokerKind {
  readonly name: string;
  readonly command: string;
  readonly argumentsFor: (port: number, folder: string) => readonly string[];
  readonly ready: RegExp;
}

/** @param given folder for data and log; undefined for a folder of the broker's own */
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
