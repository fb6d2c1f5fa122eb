/**
 * Continuous batching: at every iteration finished requests leave, waiting ones join, and everybody else gets one token. Caches live here and never travel; whoever
 * takes a request over computes them again from its tokens.
 */
import type { ChoiceDelta } from "#shared/contract/generation.js";
import { withoutPaths } from "../model/reason.js";
import { Cohort, regroup, type Row } from "./cohort.js";
import { emptyArrays, type Decoder } from "./decoder.js";
import { Generation, type GenerationLimits, type Prefill } from "./generation.js";
import { blockBytes, bytesPerPosition, gather, rightSlice, type KvBlock } from "./kv.js";
import { planPause, planPreemption, planPrefill, SLICE_MS } from "./plan.js";
import { PrefixCache } from "./prefix-cache.js";
import type { Iteration, NewGeneration, Step } from "./protocol.js";

export interface EngineLimits extends GenerationLimits {
  readonly kvBytes: number;
  readonly prefillTokens: number;
}

interface Outcome {
  readonly steps: Step[];
  readonly failed: { key: string; reason: string }[];
}

export class Engine {
  readonly #decoder: Decoder;
  readonly #limits: EngineLimits;
  readonly #perPosition: number;
  readonly #prefixes = new PrefixCache();
  readonly #generations = new Map<string, Generation>();
  #cohorts: Cohort<Generation>[] = [];
  #arrivals = 0;
  #decodedAt = -Infinity;

  constructor(decoder: Decoder, limits: EngineLimits) {
    this.#decoder = decoder;
    this.#limits = limits;
    this.#perPosition = bytesPerPosition(decoder.kv);
  }

  /** Requests that are not finished. */
  get open(): number {
    return this.#generations.size;
  }

  add(request: NewGeneration): void {
    this.#generations.set(request.key, new Generation(this.#arrivals++, request, this.#limits));
  }

  remove(key: string): void {
    this.#generations.delete(key);
    for (const row of this.#rows()) if (row.owner.key === key) row.gone = true;
  }

  /** @param only compute this request alone, the others stand still: should the process end now, it was this one. */
  async iterate(only: string | undefined): Promise<Iteration> {
    const outcome: Outcome = { steps: [], failed: [] };
    if (only === undefined && !planPause(this.#plan(only), performance.now() - this.#decodedAt)) {
      // Only now: streams that join in several pieces are copied into one block once.
      for (const cohort of this.#cohorts) cohort.compact();
      this.#cohorts = regroup(this.#decoder.kv, this.#cohorts, this.#decoder.padding);
      this.#makeRoom();
      for (const cohort of this.#cohorts) await this.#decode(cohort, outcome);
      this.#decodedAt = performance.now();
    }
    await this.#prefill(only, outcome);
    this.#join(outcome);
    this.#cohorts = this.#cohorts.filter(({ live }) => live.length > 0);
    return outcome;
  }

  async #decode(cohort: Cohort<Generation>, outcome: Outcome): Promise<void> {
    if (cohort.live.length === 0) return;
    let results: Awaited<ReturnType<Cohort<Generation>["decode"]>>;
    try {
      results = await cohort.decode(this.#decoder);
    } catch (error) {
      return this.#isolate(cohort, error, outcome);
    }
    const deltas = new Map<Generation, ChoiceDelta[]>();
    for (const { row, logits } of results) {
      try {
        const delta = row.choice.advance(logits);
        deltas.set(row.owner, [...(deltas.get(row.owner) ?? []), delta]);
      } catch (error) {
        this.#fail(row.owner, error, outcome);
      }
    }
    for (const { row } of results) {
      if (row.choice.finished === undefined) continue;
      this.#remember(row, cohort);
      row.gone = true;
    }
    for (const [generation, own] of deltas) this.#emit(generation, own, outcome);
  }

  /** One request's fault must not cost its neighbours: each runs again by itself, and only the guilty one fails. */
  async #isolate(cohort: Cohort<Generation>, error: unknown, outcome: Outcome): Promise<void> {
    const owners = new Set(cohort.live.map(({ owner }) => owner));
    const [first] = owners;
    if (owners.size === 1 && first !== undefined) return this.#fail(first, error, outcome);
    const parts = [...owners].map((owner) => cohort.part(owner));
    this.#cohorts = [...this.#cohorts.filter((one) => one !== cohort), ...parts];
    for (const part of parts) await this.#decode(part, outcome);
  }

  async #prefill(only: string | undefined, outcome: Outcome): Promise<void> {
    const { prefillTokens } = this.#limits;
    const until = performance.now() + SLICE_MS;
    let computed = 0;
    for (const { task, tokens } of this.#plan(only)) {
      if (this.#generations.get(task.generation.key) !== task.generation) continue;
      if (computed >= prefillTokens && performance.now() > until) break;
      computed += tokens;
      try {
        await this.#computeAll(task.prefill, tokens, until);
      } catch (error) {
        this.#fail(task.generation, error, outcome);
      }
    }
  }

  /** What is to be computed of prompts and histories. */
  #plan(only: string | undefined) {
    const { prefillTokens, kvBytes } = this.#limits;
    const waiting = [...this.#generations.values()].filter(
      ({ key, prefills }) => prefills.length > 0 && (only === undefined || key === only),
    );
    const tasks = waiting.flatMap((generation) => this.#tasksOf(generation));
    if (tasks.length === 0) return [];
    const used = this.activeBytes;
    const growth = tasks.reduce((sum, { growth }) => sum + growth, 0);
    return planPrefill(tasks, prefillTokens, kvBytes - used - growth, used === 0 || only !== undefined);
  }

  /** A request finds room as a whole: were some of its choices to begin without the others, it would wait for itself. */
  #tasksOf(generation: Generation) {
    const { order, prefills, interrupted } = generation;
    const begun = prefills.some(({ block }) => block !== undefined);
    const whole = prefills.reduce((sum, { tokens, choices }) => sum + tokens.length * choices.length, 0);
    return prefills
      .filter(({ logits }) => logits === undefined)
      .map((prefill, i) => {
        const left = prefill.tokens.length - prefill.done;
        const bytes = i === 0 ? whole * this.#perPosition : 0;
        // What has begun has its room, and has not taken all of it yet.
        const growth = begun ? left * prefill.choices.length * this.#perPosition : 0;
        return { generation, prefill, order, left, bytes, begun, growth, interrupted };
      });
  }

  /** In passes of at most what an iteration computes for new prompts: some models give the logits of every position. @param until when no further pass begins */
  async #computeAll(prefill: Prefill, tokens: number, until: number): Promise<void> {
    const { prefillTokens } = this.#limits;
    for (let left = tokens; left > 0 && prefill.logits === undefined; left -= prefillTokens) {
      if (left < tokens && performance.now() > until) return;
      await this.#compute(prefill, Math.min(left, prefillTokens));
    }
  }

  async #compute(prefill: Prefill, tokens: number): Promise<void> {
    const { kv, forward } = this.#decoder;
    prefill.block ??= this.#begin(prefill);
    const steps = Math.min(tokens, prefill.tokens.length - prefill.done);
    const ids = BigInt64Array.from(prefill.tokens.subarray(prefill.done, prefill.done + steps), BigInt);
    const { logits, present } = await forward({ ids, steps, lengths: [prefill.done], past: prefill.block });
    prefill.block = present;
    prefill.done += steps;
    if (prefill.done < prefill.tokens.length) return;
    // A view would keep the whole tensor of all rows and positions alive.
    prefill.logits = logits[0]?.slice();
    const slice = rightSlice(present, 0, prefill.done);
    this.#prefixes.add(prefill.tokens, slice, blockBytes(kv, present));
  }

  /** A known prefix is not computed again. */
  #begin(prefill: Prefill): KvBlock {
    const { kv } = this.#decoder;
    const known = this.#prefixes.find(prefill.tokens);
    if (known === undefined) return { rows: 1, capacity: 0, arrays: emptyArrays(kv, 0) };
    prefill.done = known.length;
    return gather(kv, [known]);
  }

  /** Whose caches are whole gets its first token from here, and decodes with the others from then on. */
  #join(outcome: Outcome): void {
    for (const generation of this.#generations.values()) {
      const { prefills } = generation;
      if (prefills.length === 0 || prefills.some(({ logits }) => logits === undefined)) continue;
      try {
        const deltas = prefills.flatMap(({ choices, logits }) =>
          logits === undefined ? [] : choices.map((choice) => choice.advance(logits)),
        );
        this.#seat(generation);
        this.#emit(generation, deltas, outcome);
      } catch (error) {
        this.#fail(generation, error, outcome);
      }
    }
  }

  #seat(generation: Generation): void {
    const seats = generation.prefills.flatMap(({ choices, block, done }) =>
      choices
        .filter(({ finished }) => finished === undefined)
        .flatMap((choice) => {
          const row: Row<Generation> = { owner: generation, choice, length: done, gone: false };
          return block === undefined ? [] : [{ row, slice: rightSlice(block, 0, done) }];
        }),
    );
    generation.prefills = [];
    if (seats.length === 0) return;
    const rows = seats.map(({ row }) => row);
    const slices = seats.map(({ slice }) => slice);
    this.#cohorts.push(new Cohort(this.#decoder.kv, rows, slices));
  }

  #emit(generation: Generation, deltas: readonly ChoiceDelta[], outcome: Outcome): void {
    // It may have failed, for a neighbour choice, in this very iteration, or been removed; even to be added anew.
    if (this.#generations.get(generation.key) !== generation) return;
    const step = generation.step(deltas);
    outcome.steps.push(step);
    if (step.final) this.#generations.delete(generation.key);
  }

  #fail(generation: Generation, error: unknown, outcome: Outcome): void {
    if (this.#generations.get(generation.key) !== generation) return;
    this.remove(generation.key);
    const reason = error instanceof Error ? error.message : String(error);
    outcome.failed.push({ key: generation.key, reason: withoutPaths(reason) });
  }

  /** A finished row may be how somebody's next prompt begins: the next turn of its conversation. */
  #remember(row: Row<Generation>, cohort: Cohort<Generation>): void {
    const { kv } = this.#decoder;
    const bytes = row.length * this.#perPosition;
    if (this.activeBytes + bytes > this.#limits.kvBytes) return;
    const block = gather(kv, [cohort.slice(row)]);
    this.#prefixes.add(row.owner.tokensOf(row.choice).subarray(0, row.length), rightSlice(block, 0, row.length), bytes);
  }

  /** Before the caches grow by one position each: known prefixes go first, then the youngest request gives way and starts again later. */
  #makeRoom(): void {
    const growth = this.#rows().length * this.#perPosition;
    const used = this.activeBytes + growth;
    this.#prefixes.shrink(Math.max(0, this.#limits.kvBytes - used));
    const excess = used - this.#limits.kvBytes;
    if (excess <= 0) return;
    const holders = [...this.#generations.values()]
      .map((generation) => ({ generation, order: generation.order, bytes: this.#bytesOf(generation) }))
      .filter(({ bytes }) => bytes > 0);
    for (const { generation } of planPreemption(holders, excess)) {
      for (const row of this.#rows()) if (row.owner === generation) row.gone = true;
      generation.restart();
    }
    for (const cohort of this.#cohorts) cohort.compact(true);
    this.#cohorts = this.#cohorts.filter(({ live }) => live.length > 0);
  }

  /** Of the caches of requests, the known prefixes aside. */
  get activeBytes(): number {
    const cohorts = this.#cohorts.reduce((sum, { bytes }) => sum + bytes, 0);
    return [...this.#generations.values()].reduce((sum, generation) => sum + this.#prefillBytes(generation), cohorts);
  }

  #bytesOf(generation: Generation): number {
    const rows = this.#cohorts.flatMap(({ block, live }) =>
      live.filter(({ owner }) => owner === generation).map(() => block.capacity * this.#perPosition),
    );
    return rows.reduce((sum, bytes) => sum + bytes, this.#prefillBytes(generation));
  }

  #prefillBytes({ prefills }: Generation): number {
    return prefills.reduce(
      (sum, { block }) => sum + (block === undefined ? 0 : blockBytes(this.#decoder.kv, block)),
      0,
    );
  }

  #rows(): Row<Generation>[] {
    return this.#cohorts.flatMap(({ rows }) => rows);
  }
}
