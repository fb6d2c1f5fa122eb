/**
 * A gateway or worker of a fleet. A dead member can start again: each life of a member is a new
 * process.
 */
import { RunningProcess, type Exit, type Launch } from "../brokers/process.js";

/**
 * When a start counts as failed, in ms. Less than a hook's limit, so that the failure shows the
 * member's output. On a busy machine a start on a graphics driver in software takes a minute.
 */
const START_MS = 110_000;

export class Member {
  readonly name: string;
  #launch: Launch;
  readonly #readyMessage: string;
  readonly #lives: RunningProcess[] = [];
  /** Exits that no test asked for. Each is a fault of a supervisor or a gateway. */
  readonly unasked: Exit[] = [];
  /** The latest life that a test has killed or terminated. */
  #told: RunningProcess | undefined;

  constructor(launch: Launch, readyMessage: string) {
    this.name = launch.name;
    this.#launch = launch;
    this.#readyMessage = readyMessage;
  }

  /** The process of the current life, or of the last life if the member is dead. */
  get process(): RunningProcess {
    const latest = this.#lives.at(-1);
    if (latest === undefined) throw new Error(`${this.name} was never started`);
    return latest;
  }

  /** All lives, first to last, because the log of a dead process counts, too. */
  get lives(): readonly RunningProcess[] {
    return this.#lives;
  }

  /**
   * Starts the next life without waiting until the process is ready. The last life must have ended.
   */
  spawn(): void {
    if (this.#lives.at(-1)?.alive === true) throw new Error(`${this.name} is still running`);
    const life = new RunningProcess(this.#launch);
    this.#lives.push(life);
    void life.exited.then((exit) => {
      if (this.#told !== life) this.unasked.push(exit);
    });
  }

  /** Later lives have these settings over the present settings. */
  reconfigure(env: Readonly<Record<string, string>>): void {
    this.#launch = { ...this.#launch, env: { ...this.#launch.env, ...env } };
  }

  /** Later lives run this program instead of the present program. */
  reprogram(program: string): void {
    this.#launch = { ...this.#launch, args: [...this.#launch.args.slice(0, -1), program] };
  }

  async ready(timeoutMs = START_MS): Promise<void> {
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

  /** Kills the member and starts it again. Resolves when the member is ready again. */
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

  /** How often all lives together have logged this message, or the sum of the field `sumOf`. */
  logged(msg: string, sumOf?: string): number {
    let total = 0;
    for (const { fields } of this.#lives.flatMap((life) => life.lines)) {
      if (fields["msg"] !== msg) continue;
      total += sumOf === undefined ? 1 : Number(fields[sumOf] ?? 1);
    }
    return total;
  }
}
