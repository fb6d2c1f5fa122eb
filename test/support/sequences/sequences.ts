/**
 * The sequences of a load, made from a seed: ids of every kind, inputs, and the steps that end a
 * sequence, start a sequence again or carry poison.
 */
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { encodeCorrelationId, type CorrelationId } from "#shared/contract/sequence.js";
import { POISON_INPUT } from "../../fixtures/models/chain-reference.js";
import type { ErrorCode } from "#shared/errors.js";
import type { Call } from "../doors/call.js";
import type { Random } from "../fleet/random.js";
import { PATIENCE_MS } from "./client.js";
import { sequenceLabel } from "./floor.js";

export interface SequencePlan {
  /** From `sequenceLabel`. */
  readonly label: string;
  readonly model: string;
  readonly calls: readonly Call[];
  /**
   * The last two calls are the poison, and a step that the fleet must refuse because of the poison.
   */
  readonly poisoned: boolean;
}

/** A level of a model's queue policies. */
export interface Level {
  readonly priority: number;
  /** Refusals of the level's policy; absent if the policy refuses nothing. */
  readonly mayFail?: readonly ErrorCode[];
}

export interface SequencesPlan {
  readonly count: number;
  readonly steps: number;
  /** Models that compute the same function as `chain`. Each sequence takes the next model. */
  readonly models: readonly string[];
  /** How many sequences carry poison. These ask the model `pill`. */
  readonly poison?: number;
  /** The share of steps that a client sends together with the step before. */
  readonly bursts?: number;
  /** The share of sequences that number their steps, and send several steps in a row. */
  readonly numbered?: number;
  /**
   * The levels of models with queue policies, of which each request names one. A step that begins
   * or ends a sequence, or is the last step, names a level that refuses nothing.
   */
  readonly levels?: Readonly<Record<string, readonly Level[]>>;
  readonly random: Random;
  /**
   * Each sequence takes the next tenant. The sequences of a turn through all tenants have the same
   * id.
   */
  readonly tenants?: readonly string[];
  /** Keeps the requests of several loads in a history apart. */
  readonly prefix?: string;
}

export function planSequences(plan: SequencesPlan): SequencePlan[] {
  const { count, models, poison = 0, random, prefix = "r", tenants = [DEFAULT_TENANT] } = plan;
  let id = correlationId(0, prefix, random);
  return Array.from({ length: count }, (_, i) => {
    if (i > 0 && i % tenants.length === 0) id = correlationId(i, prefix, random);
    const tenant = tenants[i % tenants.length] ?? DEFAULT_TENANT;
    const poisoned = i < poison;
    const turn = Math.floor(i / tenants.length);
    const model = poisoned ? "pill" : (models[turn % models.length] ?? "chain");
    const label = sequenceLabel(tenant, encodeCorrelationId(id));
    return {
      label,
      model,
      poisoned,
      calls: planCalls(plan, { id, label, model, tenant, poisoned, request: `${prefix}-${i}` }),
    };
  });
}

interface Sequence {
  readonly id: CorrelationId;
  readonly label: string;
  readonly model: string;
  readonly tenant: string;
  readonly poisoned: boolean;
  readonly request: string;
}

/** The share of steps that a client with numbers sends behind the step before. */
const IN_A_ROW = 0.6;

function planCalls(plan: SequencesPlan, sequence: Sequence): Call[] {
  const { steps, bursts = 0, random } = plan;
  const { id, label, model, tenant, poisoned, request } = sequence;
  const levels = plan.levels?.[model] ?? [];
  const numbered = !poisoned && levels.length === 0 && plan.numbered !== undefined && random.chance(plan.numbered);
  const ends = !poisoned && random.chance(0.5);
  const middle = random.between(Math.ceil(steps / 3), Math.ceil((2 * steps) / 3));
  const anew = !poisoned && steps >= 6 && random.chance(1 / 3);
  const endsBefore = anew && random.chance(0.5);
  const poisonAt = poisoned ? middle : undefined;
  const calls: Call[] = [];
  let burst = 0;
  let begun = 1;
  for (let step = 1; step <= (poisonAt ?? steps); step++) {
    const start = step === 1 || (anew && step === middle);
    const end = (ends && step === steps) || (endsBefore && step === middle - 1);
    const previous = calls.at(-1);
    const free = !start && !end && step < steps && step !== poisonAt;
    const joins = free && previous?.start === false && !previous.end && random.chance(numbered ? IN_A_ROW : bursts);
    if (!joins) burst += 1;
    if (start) begun = step;
    const input = step === poisonAt ? POISON_INPUT : harmless(random);
    const ask = { request: `${request}-${step}`, model, tenant, sequence: label, step, burst, input, start, end };
    const expects = step === poisonAt ? { expects: "poison_request" as const } : {};
    const number = numbered ? { sequence_step: step - begun + 1 } : {};
    const content = contentOf({ id, start, end }, input, number);
    const call = { ...ask, ...expects, ...(numbered && { numbered }), ...content };
    calls.push(atLevel(call, pickLevel(levels, free, random)));
  }
  if (poisonAt !== undefined) {
    const step = poisonAt + 1;
    const ask = { request: `${request}-${step}`, model, tenant, sequence: label, step, burst: burst + 1, input: 1n };
    const content = contentOf({ id, start: false, end: false }, 1n);
    calls.push({ ...ask, expects: "sequence_start_required", ...content });
  }
  return calls;
}

function harmless(random: Random): bigint {
  const input = random.int64();
  return input === POISON_INPUT ? 1n : input;
}

export function atLevel(call: Call, level: Level | undefined): Call {
  if (level === undefined) return call;
  const { priority, mayFail } = level;
  return { ...call, parameters: { ...call.parameters, priority }, ...(mayFail === undefined ? {} : { mayFail }) };
}

function pickLevel(levels: readonly Level[], mayFail: boolean, random: Random): Level | undefined {
  const fitting = mayFail ? levels : levels.filter((level) => level.mayFail === undefined);
  return fitting.length === 0 ? undefined : random.pick(fitting);
}

interface Place {
  readonly id: CorrelationId;
  readonly start: boolean;
  readonly end: boolean;
}

/** The content of a step with this input. */
function contentOf({ id, start, end }: Place, input: bigint, more: Call["parameters"] = {}) {
  const parameters = { timeout: PATIENCE_MS * 1_000, sequence_id: id.value, sequence_start: start, sequence_end: end };
  return {
    parameters: { ...parameters, ...more },
    inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [input] }],
  } as const satisfies Pick<Call, "parameters" | "inputs">;
}

function correlationId(i: number, prefix: string, random: Random): CorrelationId {
  switch (i % 4) {
    case 0:
      return { kind: "uint64", value: BigInt(random.between(1, 0xffffffff)) * 100_000n + BigInt(i) };
    case 1:
      return {
        kind: "uint64",
        value: 0xffff_ffff_ffff_ffffn - BigInt(random.between(0, 0xffffffff)) * 100_000n - BigInt(i),
      };
    case 2:
      return { kind: "string", value: `${prefix}:{${i}}*/ü ${random.between(0, 0xffffffff)}` };
    default:
      return { kind: "string", value: `${prefix}-${i}-${random.between(0, 0xffffffff)}` };
  }
}
