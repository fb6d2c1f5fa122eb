/**
 * Clients that count: each client takes the steps of one sequence of `accumulate`, and knows the
 * answer of every step. They report which losses the fleet admitted, and which not.
 */
import type { Agent } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { errorKinds, isErrorCode } from "#shared/errors.js";
import { stepBody } from "../../edition/ask.js";
import { keepAliveAgent, post } from "../../support/doors/exchange.js";

export interface NumberedLoad {
  readonly urls: readonly string[];
  readonly sequences: number;
  /**
   * Steps of each sequence. Every second client says the numbers of its steps. The other clients
   * check the numbers of the answers.
   */
  readonly steps: number;
  /** How long a client repeats one step at most. */
  readonly patienceMs: number;
  /** A client rests after each step, so that the load lasts as long as the faults. */
  readonly restMs: number;
}

/** The counts of all clients together. */
export interface Seen {
  /** Steps whose answer a client has, each counted once. */
  acknowledged: number;
  /** Steps that were answered and that the fleet has lost. */
  lost: number;
  /** Times that the answer `ahead_of_state` reported the loss. */
  toldAhead: number;
  /** Times that a client saw the loss in the number of an answer. */
  seenInAnswer: number;
  /** Times that a client read that the START of its sequence is gone. */
  toldStart: number;
  /** Everything wrong: steps that ran on an older state in silence, and steps without an answer. */
  readonly wrong: string[];
}

/** One sequence as its client knows it. */
interface Course {
  readonly id: number;
  readonly saysNumbers: boolean;
  /** The sums of the steps so far. */
  readonly answers: number[];
  /** How many times the fleet has fallen back behind the answers. */
  relapses: number;
}

interface Reply {
  readonly status: number;
  readonly code?: string | undefined;
  readonly error?: string | undefined;
  readonly step?: number | undefined;
  readonly output?: number | undefined;
}

export class NumberedClients {
  readonly seen: Seen = { acknowledged: 0, lost: 0, toldAhead: 0, seenInAnswer: 0, toldStart: 0, wrong: [] };
  readonly #load: NumberedLoad;
  readonly #agent: Agent = keepAliveAgent();
  readonly #courses: readonly Course[];

  constructor(load: NumberedLoad) {
    this.#load = load;
    this.#courses = Array.from({ length: load.sequences }, (_, i) => ({
      id: i + 1,
      saysNumbers: i % 2 === 0,
      answers: [],
      relapses: 0,
    }));
  }

  /** Resolves when every client has finished, or has stopped at something wrong. */
  async run(): Promise<Seen> {
    await Promise.all(this.#courses.map((course) => this.#go(course)));
    this.#agent.destroy();
    return this.seen;
  }

  /** How many steps of each sequence have an answer so far. */
  get progress(): readonly number[] {
    return this.#courses.map(({ answers }) => answers.length);
  }

  /** Resolves when each sequence has this many more answers than now. */
  async further(steps: number): Promise<void> {
    const from = this.progress;
    const giveUpAt = performance.now() + this.#load.patienceMs;
    const isThere = () =>
      this.progress.every((now, i) => now >= Math.min((from[i] ?? 0) + steps, this.#load.steps)) ||
      this.seen.wrong.length > 0;
    while (!isThere()) {
      if (performance.now() > giveUpAt) throw new Error(`the load stands still at ${this.progress.join(" ")}`);
      await pause(10);
    }
  }

  async #go(course: Course): Promise<void> {
    const { answers } = course;
    while (answers.length < this.#load.steps) {
      const number = answers.length + 1;
      const reply = await this.#answered(course, number);
      if (!this.#learn(course, number, reply)) return;
      await pause(this.#load.restMs);
    }
  }

  /** @returns whether the client can take its next step */
  #learn(course: Course, number: number, reply: Reply): boolean {
    const { id, saysNumbers, answers } = course;
    const wrong = (what: string) => {
      this.seen.wrong.push(`sequence ${id}, step ${number}: ${what}, ${JSON.stringify(reply)}`);
      return false;
    };
    if (reply.status === 200) {
      const { step, output } = reply;
      if (step === undefined || output === undefined) return wrong("an answer without its number or its sum");
      if (step > number) return wrong("an answer to a later step");
      if (step < number) {
        if (saysNumbers) return wrong("another step was run than the client had said");
        // The fleet added the value to an older state, and the number says so.
        if (output !== sumOf(id, step - 1) + valueOf(id, number)) return wrong("a sum of no state that ever was");
        this.seen.seenInAnswer++;
        this.#relapse(course, step - 1);
        return this.#beginAnew(course);
      }
      if (output !== sumOf(id, number)) return wrong(`it should be ${sumOf(id, number)}`);
      answers.push(output);
      this.seen.acknowledged++;
      return true;
    }
    if (reply.code === "ahead_of_state") {
      const next = Number(/next step of that sequence is (\d+)/.exec(reply.error ?? "")?.[1]);
      if (!saysNumbers || !(next >= 1 && next < number)) return wrong("no number below the client's");
      this.seen.toldAhead++;
      this.#relapse(course, next - 1);
      return true;
    }
    if (reply.code === "sequence_start_required" && number > 1) {
      this.seen.toldStart++;
      this.#relapse(course, 0);
      return true;
    }
    return wrong("neither an answer nor what a lost step may be told");
  }

  #relapse(course: Course, kept: number): void {
    this.seen.lost += course.answers.length - kept;
    course.relapses++;
    course.answers.length = kept;
  }

  /** The fleet ran no step of the client's course, so the client begins anew with START. */
  #beginAnew(course: Course): boolean {
    course.answers.length = 0;
    return true;
  }

  /** Asks under one key until the answer is final. */
  async #answered(course: Course, number: number): Promise<Reply> {
    const giveUpAt = performance.now() + this.#load.patienceMs;
    const key = `sequence-${course.id}-${course.relapses}-step-${number}`;
    for (let at = course.id; ; at++) {
      const url = this.#load.urls[at % this.#load.urls.length] ?? "";
      const reply = await this.#ask(url, key, course, number);
      if (!isOpen(reply) || performance.now() > giveUpAt) return reply;
      await pause(50);
    }
  }

  async #ask(url: string, key: string, { id, saysNumbers }: Course, number: number): Promise<Reply> {
    const numbers = saysNumbers ? { parameters: { sequence_step: number } } : {};
    const step = { sequence: id, value: valueOf(id, number), start: number === 1, ...numbers };
    try {
      const { status, body } = await post({
        url: `${url}/v2/models/accumulate/infer`,
        headers: { "idempotency-key": key },
        body: JSON.stringify(stepBody(step)),
        timeoutMs: 10_000,
        agent: this.#agent,
      });
      const { code, error, parameters, outputs } = JSON.parse(body) as {
        readonly code?: string;
        readonly error?: string;
        readonly parameters?: { readonly sequence_step?: number };
        readonly outputs?: readonly { readonly data: readonly number[] }[];
      };
      return { status, code, error, step: parameters?.sequence_step, output: outputs?.[0]?.data[0] };
    } catch (cause) {
      return { status: 0, error: String(cause) };
    }
  }
}

/** Whether a repeat of the request may still get an answer. */
function isOpen({ status, code }: Reply): boolean {
  return status === 0 || (code !== undefined && isErrorCode(code) && errorKinds[code].retry);
}

/** The input of a step: no two sequences, and no two steps of a sequence, add the same value. */
const valueOf = (sequence: number, step: number) => sequence * 1_000 + step;

const sumOf = (sequence: number, steps: number) => sequence * 1_000 * steps + (steps * (steps + 1)) / 2;
