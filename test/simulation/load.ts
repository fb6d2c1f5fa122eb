/**
 * The clients of a simulation. Each sequence has a client of one of three kinds. A client with keys
 * asks again until there is an outcome, and sends some steps together. A client that numbers its
 * steps has several steps under way, in order. A client without keys, like most clients, asks once.
 */
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { errorKinds } from "#shared/errors.js";
import { delay } from "#shared/retry.js";
import type { Random } from "../support/fleet/random.js";
import type { Ending } from "../support/doors/ask.js";
import { askOf, type Call } from "../support/doors/call.js";
import type { History } from "../support/sequences/history.js";
import { planSequences } from "../support/sequences/sequences.js";
import type { InferenceOutcome, InferenceRequest } from "../../gateway/admission/inference.js";
import type { Gateway } from "./gateway.js";
import { inputTensor, MODEL } from "./model.js";
import { Process, type Setting } from "./process.js";

export interface LoadPlan {
  /** How many sequences of each kind. */
  readonly keyed: number;
  readonly numbered: number;
  readonly keyless: number;
  readonly steps: number;
  /** The share of steps with a deadline that may pass. */
  readonly hurried: number;
  /** The longest pause between two steps of a sequence, in ms. */
  readonly pauseMs: number;
}

type Kind = "keyed" | "numbered" | "keyless";

/** A step of a client. */
interface Step extends Call {
  readonly kind: Kind;
  readonly number: number;
  readonly deadlineMs: number;
}

const PATIENT_MS = 120_000;
/** A client with a key asks another gateway after this long. */
const ATTEMPT_MS = 3_000;
/** How many steps a client that numbers its steps has under way. */
const UNDER_WAY = 4;
/** With these codes the gateway surely did not admit the request. */
const REFUSALS = ["unavailable", "queue_full", "refused"];

export class Clients extends Process {
  readonly #history: History;
  readonly #gateways: () => readonly Gateway[];
  readonly #random: Random;
  readonly #attempts = new Map<string, number>();
  /** How many sequences have ended. */
  ended = 0;

  constructor(setting: Setting, gateways: () => readonly Gateway[], history: History, random: Random) {
    super(setting, "clients", random);
    this.#gateways = gateways;
    this.#history = history;
    this.#random = random.fork("load");
  }

  /** Resolves when each sequence has ended, or has stopped. */
  async run(plan: LoadPlan): Promise<void> {
    const kinds: Kind[] = ["keyed", "numbered", "keyless"];
    const sequences = kinds.flatMap((kind) => {
      const bursts = kind === "keyed" ? 0.3 : 0;
      const random = this.#random.fork(kind);
      const planned = planSequences({
        count: plan[kind],
        steps: plan.steps,
        models: [MODEL],
        bursts,
        random,
        prefix: kind,
      });
      return planned.map(({ calls }) => stepsOf(calls, kind, plan, random));
    });
    await Promise.all(sequences.map((steps) => this.#runSequence(steps, plan)));
  }

  async #runSequence(steps: readonly Step[], plan: LoadPlan): Promise<void> {
    await this.#pause(plan);
    const numbers = steps[0]?.kind === "numbered";
    const isWhole = numbers ? await this.#inARow(steps, plan) : await this.#burstByBurst(steps, plan);
    this.ended++;
    if (!isWhole) this.setting.trace.note(this.name, `${steps[0]?.request} stops early`);
  }

  async #burstByBurst(steps: readonly Step[], plan: LoadPlan): Promise<boolean> {
    for (let i = 0; i < steps.length;) {
      const burst = steps.filter(({ burst }, j) => j >= i && burst === steps[i]?.burst);
      i += burst.length;
      const endings = await Promise.all(burst.map((step) => this.#askPerhapsTwice(step)));
      if (!endings.every((ending, j) => goesOn(burst[j], ending))) return false;
      await this.#pause(plan);
    }
    return true;
  }

  async #inARow(steps: readonly Step[], plan: LoadPlan): Promise<boolean> {
    let underWay: Promise<unknown>[] = [];
    let isWhole = true;
    let begins = false;
    for (const step of steps) {
      // A step sent beside a START may arrive first, and meet a refusal.
      if (begins || step.start === true) await Promise.all(underWay);
      begins = step.start === true;
      while (underWay.length >= UNDER_WAY) await Promise.race(underWay);
      if (!isWhole) break;
      const asked: Promise<unknown> = this.#askPerhapsTwice(step).then((ending) => {
        isWhole &&= goesOn(step, ending);
        underWay = underWay.filter((one) => one !== asked);
      });
      underWay.push(asked);
      if (this.#random.chance(0.4)) await this.#pause(plan);
    }
    await Promise.all(underWay);
    return isWhole;
  }

  /** A client with keys sometimes sends a request twice at once, or asks for its outcome again. */
  async #askPerhapsTwice(step: Step): Promise<Ending> {
    if (step.kind === "keyless") return this.#ask(step);
    const twin = this.#random.chance(0.05) ? this.#ask(step) : undefined;
    const ending = await this.#ask(step);
    await twin;
    if (ending.kind !== "unknown" && this.#random.chance(0.1)) await this.#ask(step);
    return ending;
  }

  async #ask(step: Step): Promise<Ending> {
    const { kind, number: _, deadlineMs: __, ...call } = step;
    const ask = askOf(call);
    for (let pauseMs = 10; ; pauseMs = Math.min(2 * pauseMs, 250)) {
      const gateway = this.#random.pick(this.#gateways());
      const attempt = (this.#attempts.get(step.request) ?? 0) + 1;
      this.#attempts.set(step.request, attempt);
      const stamp = { client: this.name, attempt };
      this.#record({ ...stamp, kind: "submit", at: this.#history.now(), gateway: gateway.name, ask });
      const ending = await this.#attempt(gateway, step);
      this.#record({ ...stamp, at: this.#history.now(), request: step.request, ...ending });
      const isOver = kind === "keyless" && ending.kind === "unknown" && !REFUSALS.includes(ending.why);
      if (ending.kind !== "unknown" || isOver) return ending;
      await delay(pauseMs, undefined, this.world);
    }
  }

  #record(event: History["events"][number]): void {
    this.#history.record(event);
    const plain = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
    const { at: __, client: ___, ...facts } = event;
    this.setting.trace.note(this.name, JSON.stringify(facts, plain));
  }

  /** A single call of a gateway, over a connection that breaks when the gateway dies. */
  #attempt(gateway: Gateway, step: Step): Promise<Ending> {
    const { scheduler, chaos } = this.setting;
    return new Promise((resolve) => {
      const later = (what: string, act: () => void) => scheduler.plan(this.owner, chaos.latencyMs(), what, act);
      let giveUp: () => void = () => undefined;
      const end = (ending: Ending) => {
        giveUp();
        forget();
        resolve(ending);
      };
      const forget = gateway.onEnd(() => later("a reset arrives", () => end({ kind: "unknown", why: "reset" })));
      const { inference, fleet } = gateway;
      const model = fleet?.directory.pinned(MODEL, { version: "1", digest: "a" });
      if (gateway.owner.isDead || inference === undefined || model === undefined) {
        later("a refusal arrives", () => end({ kind: "unknown", why: "refused" }));
        return;
      }
      scheduler.plan(gateway.owner, chaos.latencyMs(), "a request arrives", () => {
        void inference.infer(requestOf(step, model)).then((outcome) => {
          later("an answer arrives", () => end(endingOf(outcome, step)));
        });
      });
      if (step.kind === "keyless") return;
      giveUp = scheduler.plan(this.owner, ATTEMPT_MS, "patience ends", () => end({ kind: "unknown", why: "timeout" }));
    });
  }

  async #pause({ pauseMs }: LoadPlan): Promise<void> {
    await delay(this.#random.unit() * pauseMs, undefined, this.world);
  }
}

function stepsOf(calls: readonly Call[], kind: Kind, { hurried }: LoadPlan, random: Random): Step[] {
  let begun = 1;
  return calls.map((call) => {
    const { start, end, step = 1 } = call;
    if (start === true) begun = step;
    const mayExpire = start !== true && end !== true && random.chance(hurried);
    return {
      ...call,
      kind,
      number: step - begun + 1,
      deadlineMs: mayExpire ? random.between(20, 600) : PATIENT_MS,
      ...(mayExpire && { mayFail: ["expired"] as const }),
      ...(kind === "keyless" && { unkeyed: true as const }),
    };
  });
}

function requestOf(step: Step, model: InferenceRequest["model"]): InferenceRequest {
  const { sequence = "", start = false, end = false, kind, number, deadlineMs, input = 0n } = step;
  const request: InferenceRequest = {
    model,
    tenant: "default",
    sequence: { id: decodeCorrelationId(sequence), start, end, ...(kind === "numbered" && { number }) },
    idempotencyKey: kind === "keyless" ? undefined : step.request,
    deadlineMs,
    under: () => request,
    inputs: [inputTensor(input)],
    outputs: ["OUTPUT"],
    parameters: {},
  };
  return request;
}

function endingOf(outcome: InferenceOutcome, { request, kind }: Step): Ending {
  if (outcome.kind === "result") {
    const output = String(Buffer.from(outcome.tensors[0]?.data ?? []).readBigInt64LE(0));
    return { kind: "ok", output, echoedId: request, version: outcome.version };
  }
  const { code } = outcome;
  const { status, retry } = errorKinds[code];
  // A step that arrives before its predecessor comes again.
  const isEarly = kind === "numbered" && code === "ahead_of_state";
  return isEarly || (retry && (status === 503 || status === 429))
    ? { kind: "unknown", why: code }
    : { kind: "fail", status, code };
}

function goesOn(step: Step | undefined, ending: Ending): boolean {
  return ending.kind === "ok" || (ending.kind === "fail" && ending.code === "expired" && step?.mayFail !== undefined);
}
