/**
 * The sequences of a load, made from a seed: ids of every kind, inputs, and the steps that end a
 * sequence, start a sequence again or carry poison.
 */
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { encodeCorrelationId, type CorrelationId } from "#shared/contract/sequence.js";
import { POISON_INPUT } from "../../fixtures/models/chain-reference.js";
import type { Random } from "../fleet/random.js";
import { PATIENCE_MS, type Call } from "./client.js";
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

export interface SequencesPlan {
  readonly count: number;
  readonly steps: number;
  /** Models that compute the same function as `chain`. Each sequence takes the next model. */
  readonly models: readonly string[];
  /** How many sequences carry poison. These ask the model `pill`. */
  readonly poison?: number;
  /** The share of steps that a client sends together with the step before. */
  readonly bursts?: number;
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

function planCalls({ steps, bursts = 0, random }: SequencesPlan, sequence: Sequence): Call[] {
  const { id, label, model, tenant, poisoned, request } = sequence;
  const ends = !poisoned && random.chance(0.5);
  const middle = random.between(Math.ceil(steps / 3), Math.ceil((2 * steps) / 3));
  const anew = !poisoned && steps >= 6 && random.chance(1 / 3);
  const endsBefore = anew && random.chance(0.5);
  const poisonAt = poisoned ? middle : undefined;
  const calls: Call[] = [];
  let burst = 0;
  for (let step = 1; step <= (poisonAt ?? steps); step++) {
    const start = step === 1 || (anew && step === middle);
    const end = (ends && step === steps) || (endsBefore && step === middle - 1);
    const previous = calls.at(-1);
    const free = !start && !end && step < steps && step !== poisonAt;
    const joins = free && previous?.start === false && !previous.end && random.chance(bursts);
    if (!joins) burst += 1;
    const input = step === poisonAt ? POISON_INPUT : harmless(random);
    const ask = { request: `${request}-${step}`, model, tenant, sequence: label, step, burst, input, start, end };
    const expects = step === poisonAt ? { expects: "poison_request" as const } : {};
    calls.push({ ...ask, ...expects, body: chainBody(ask.request, id, input, start, end) });
  }
  if (poisonAt !== undefined) {
    const step = poisonAt + 1;
    const ask = { request: `${request}-${step}`, model, tenant, sequence: label, step, burst: burst + 1, input: 1n };
    calls.push({ ...ask, expects: "sequence_start_required", body: chainBody(ask.request, id, 1n, false, false) });
  }
  return calls;
}

function harmless(random: Random): bigint {
  const input = random.int64();
  return input === POISON_INPUT ? 1n : input;
}

/** Concatenated by hand, because JSON.stringify cannot write integers above 2^53. */
export function chainBody(request: string, id: CorrelationId, input: bigint, start: boolean, end: boolean): string {
  const sequenceId = id.kind === "uint64" ? String(id.value) : JSON.stringify(id.value);
  return (
    `{"id":${JSON.stringify(request)},"parameters":{"timeout":${PATIENCE_MS * 1_000},` +
    `"sequence_id":${sequenceId},"sequence_start":${start},"sequence_end":${end}},` +
    `"inputs":[{"name":"INPUT","datatype":"INT64","shape":[1,1],"data":[${input}]}]}`
  );
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
