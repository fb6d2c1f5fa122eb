/** One gateway or worker of a fleet under test: the same member across its deaths, each life a new process. */
import { RunningProcess, type Exit, type Launch } from "./process.js";

export class Member {
  readonly name: string;
  readonly #launch: Launch;
  readonly #readyMessage: string;
  readonly #lives: RunningProcess[] = [];
  /** Ends of lives that nobody asked to end: no supervisor and no gateway may ever add one. */
  readonly unasked: Exit[] = [];
  /** The life that was last told to end. */
  #told: RunningProcess | undefined;

  constructor(launch: Launch, readyMessage: string) {
    this.name = launch.name;
    this.#launch = launch;
    this.#readyMessage = readyMessage;
  }

  /** Of the current life, or the last one. */
  get process(): RunningProcess {
    const latest = this.#lives.at(-1);
    if (latest === undefined) throw new Error(`${this.name} was never started`);
    return latest;
  }

  /** All lives, first to last: what the dead have logged counts too. */
  get lives(): readonly RunningProcess[] {
    return this.#lives;
  }

  /** Spawns without waiting: the next life begins as soon as the last one is gone. */
  spawn(): void {
    if (this.#lives.at(-1)?.alive === true) throw new Error(`${this.name} is still running`);
    const life = new RunningProcess(this.#launch);
    this.#lives.push(life);
    void life.exited.then((exit) => {
      if (this.#told !== life) this.unasked.push(exit);
    });
  }

  async ready(timeoutMs = 60_000): Promise<void> {
    await this.process.waitForMessage(this.#readyMessage, timeoutMs);
  }

  async start(): Promise<void> {
    this.spawn();
    await this.ready();
  }

  async kill(): Promise<Exit> {
    this.#told = this.process;
    return this.process.kill();
  }

  /** SIGKILL and start anew; resolves when it is ready again. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  freeze(): void {
    this.process.signalGroup("SIGSTOP");
  }

  thaw(): void {
    this.process.signalGroup("SIGCONT");
  }

  async terminate(graceMs?: number): Promise<Exit> {
    this.#told = this.process;
    return this.process.terminate(graceMs);
  }

  /** Over all lives: how often this was logged, or the sum of the field where one is named. */
  logged(msg: string, sumOf?: string): number {
    let total = 0;
    for (const { fields } of this.#lives.flatMap((life) => life.lines)) {
      if (fields["msg"] !== msg) continue;
      total += sumOf === undefined ? 1 : Number(fields[sumOf] ?? 1);
    }
    return total;
  }
}
