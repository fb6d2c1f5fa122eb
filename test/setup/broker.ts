/** A broker that keeps its port and its data when it is killed, so that coming back is the same server, restarted. */
import { onFreePort } from "./port.js";
import { RunningProcess, type Launch } from "./process.js";

export interface Broker {
  readonly port: number;
  readonly process: RunningProcess;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port and folder; resolves when it answers. */
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
  dispose(): Promise<void>;
}

/** What a kind of broker adds: its command line and the line that says it is up. */
export interface BrokerKind {
  readonly launch: (port: number) => Launch;
  readonly ready: RegExp;
}

export async function startBroker({ launch, ready }: BrokerKind): Promise<Broker> {
  async function start(port: number): Promise<RunningProcess> {
    const started = new RunningProcess(launch(port));
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
    },
  };
}
