/**
 * Continuous batching: at every iteration finished requests leave, waiting requests join, and every
 * running request gets a token for each of its choices. Caches of keys and values never leave this
 * thread. A worker that takes a request over computes the caches again from the tokens.
 */
import type { ChoiceDelta } from "#shared/contract/generation.js";
import { withoutPaths } from "../onnx/error-text.js";
import { DecodeBatch, mergeBatches, type Row } from "./batch.js";
import { emptyArrays, type Decoder } from "./decoder.js";
import { Generation, type GenerationLimits, type Prefill } from "./generation.js";
import { blockBytes, bytesPerPosition, gather, rightSlice, type KvBlock } from "./kv.js";
import { planPause, planPreemption, planPrefill, SLICE_MS } from "./plan.js";
import { PrefixCache } from "./prefix-cache.js";
import type { Iteration, NewGeneration, Step } from "./protocol.js";
import { Shares } from "../shares/shares.js";

export interface EngineLimits extends GenerationLimits {
  /** Memory for all caches, known prefixes included, in bytes. */
  readonly kvBytes: number;
  /** Prompt tokens per iteration, beside the rows that decode. */
  readonly prefillTokens: number;
}

/** A part of a request's prompts that an iteration may compute. */
interface Task {
  readonly generation: Generation;
  readonly prefill: Prefill;
}

/** An iteration in progress. */
interface OpenIteration {
  readonly steps: Step[];
  readonly failed: { key: string; reason: string }[];
  readonly prefilled: { key: string; ms: number }[];
  passes: number;
  computed: number;
}

export class Engine {
  readonly #decoder: Decoder;
  readonly #limits: EngineLimits;
  /** Bytes of one position of one row in the caches. */
  readonly #perPosition: number;
  readonly #prefixes = new PrefixCache();
  /** How the tenants share the prompt tokens of iterations. */
  readonly #shares = new Shares();
  /** Every unfinished request, by its key. */
  readonly #generations = new Map<string, Generation>();
  /** All rows that decode. Each row is in one batch. */
  #batches: DecodeBatch<Generation>[] = [];
  /** Number of requests added since the start. */
  #arrivals = 0;
  /** The time of the last tokens of the batches, on `performance.now()`'s clock. */
  #decodedAt = -Infinity;

  constructor(decoder: Decoder, limits: EngineLimits) {
    this.#decoder = decoder;
    this.#limits = limits;
    this.#perPosition = bytesPerPosition(decoder.kv);
  }

  /** Number of unfinished requests. */
  get open(): number {
    return this.#generations.size;
  }

  /** Adds a request. The request joins at the next iteration with room. */
  add(request: NewGeneration): void {
    this.#generations.set(request.key, new Generation(this.#arrivals++, request, this.#limits));
  }

  /** Forgets a request. Does nothing if the key is unknown. */
  remove(key: string): void {
    this.#generations.delete(key);
    for (const row of this.#rows()) if (row.owner.key === key) row.gone = true;
  }

  /**
   * Computes the next token of every request that has room.
   * @param only key of the request to compute alone. If the process ends now, that request is to
   *   blame.
   * @returns the records of the requests, and the requests that the model refused
   */
  async iterate(only: string | undefined): Promise<Iteration> {
    const iteration: OpenIteration = { steps: [], failed: [], prefilled: [], passes: 0, computed: 0 };
    if (only === undefined && !planPause(this.#plan(only), performance.now() - this.#decodedAt)) {
      // Batches merge only now. Requests that joined one after the other during a pause thus need
      // only one copy into a common block.
      for (const batch of this.#batches) batch.compact();
      this.#batches = mergeBatches(this.#decoder.kv, this.#batches, this.#decoder.padding);
      this.#makeRoom();
      for (const batch of this.#batches) await this.#decode(batch, iteration);
      this.#decodedAt = performance.now();
    }
    await this.#prefill(only, iteration);
    this.#join(iteration);
    this.#batches = this.#batches.filter(({ live }) => live.length > 0);
    return { ...iteration, cacheBytes: this.activeBytes };
  }

  /** Adds one token to every row of the batch. */
  async #decode(batch: DecodeBatch<Generation>, iteration: OpenIteration): Promise<void> {
    if (batch.live.length === 0) return;
    let results: Awaited<ReturnType<DecodeBatch<Generation>["decode"]>>;
    iteration.passes++;
    try {
      results = await batch.decode(this.#decoder);
    } catch (error) {
      return this.#isolate(batch, error, iteration);
    }
    iteration.computed += results.length;
    const deltas = new Map<Generation, ChoiceDelta[]>();
    for (const { row, logits } of results) {
      try {
        const delta = row.choice.advance(logits);
        deltas.set(row.owner, [...(deltas.get(row.owner) ?? []), delta]);
      } catch (error) {
        this.#fail(row.owner, error, iteration);
      }
    }
    for (const { row } of results) {
      if (row.choice.finished === undefined) continue;
      this.#remember(row, batch);
      row.gone = true;
    }
    for (const [generation, own] of deltas) this.#emit(generation, own, iteration);
  }

  /**
   * Runs the requests of a failed pass again, each in a batch of its own. Thus only the request
   * that causes the fault fails, and its neighbours continue.
   */
  async #isolate(batch: DecodeBatch<Generation>, error: unknown, iteration: OpenIteration): Promise<void> {
    const owners = new Set(batch.live.map(({ owner }) => owner));
    const [first] = owners;
    if (owners.size === 1 && first !== undefined) return this.#fail(first, error, iteration);
    const parts = [...owners].map((owner) => batch.part(owner));
    this.#batches = [...this.#batches.filter((one) => one !== batch), ...parts];
    for (const part of parts) await this.#decode(part, iteration);
  }

  /** Computes prompts and histories within the time of this iteration. */
  async #prefill(only: string | undefined, iteration: OpenIteration): Promise<void> {
    const { prefillTokens } = this.#limits;
    const until = performance.now() + SLICE_MS;
    let computed = 0;
    for (const { task, tokens } of this.#plan(only)) {
      if (this.#generations.get(task.generation.key) !== task.generation) continue;
      if (computed >= prefillTokens && performance.now() > until) break;
      computed += tokens;
      const begunAt = performance.now();
      try {
        await this.#computeAll(task, tokens, until, iteration);
      } catch (error) {
        this.#fail(task.generation, error, iteration);
      }
      iteration.prefilled.push({ key: task.generation.key, ms: performance.now() - begunAt });
    }
  }

  /** Chooses the prompts and histories of this iteration, and the number of tokens of each. */
  #plan(only: string | undefined) {
    const { prefillTokens, kvBytes } = this.#limits;
    const waiting = [...this.#generations.values()].filter(
      ({ key, prefills }) => prefills.length > 0 && (only === undefined || key === only),
    );
    const tasks = waiting.flatMap((generation) => this.#tasksOf(generation));
    if (tasks.length === 0) {
      this.#shares.clear();
      return [];
    }
    const used = this.activeBytes;
    const growth = tasks.reduce((sum, { growth }) => sum + growth, 0);
    const turns = this.#shares.inTurn(tasks);
    return planPrefill(turns, prefillTokens, kvBytes - used - growth, used === 0 || only !== undefined);
  }

  /**
   * The tasks of one request. The first task asks for the bytes of all, so that a request finds
   * room as a whole. Otherwise some choices could wait for memory that the request's other choices
   * hold.
   */
  #tasksOf(generation: Generation) {
    const { order, prefills, interrupted, level, tenant, weight } = generation;
    const begun = prefills.some(({ block }) => block !== undefined);
    const whole = prefills.reduce((sum, { tokens, choices }) => sum + tokens.length * choices.length, 0);
    return prefills
      .filter(({ logits }) => logits === undefined)
      .map((prefill, i) => {
        const left = prefill.tokens.length - prefill.done;
        const bytes = i === 0 ? whole * this.#perPosition : 0;
        // A request that has begun already has its room, but does not use all of that room yet.
        const growth = begun ? left * prefill.choices.length * this.#perPosition : 0;
        return { generation, prefill, level, tenant, weight, order, left, bytes, begun, growth, interrupted };
      });
  }

  /**
   * Computes `tokens` more tokens of a prefill. Each pass takes at most `prefillTokens`, because
   * some models give the logits of every position, which need memory.
   * @param until no further pass begins after this time, on `performance.now()`'s clock
   */
  async #computeAll(
    { generation, prefill }: Task,
    tokens: number,
    until: number,
    iteration: OpenIteration,
  ): Promise<void> {
    const { prefillTokens } = this.#limits;
    for (let left = tokens; left > 0 && prefill.logits === undefined; left -= prefillTokens) {
      if (left < tokens && performance.now() > until) return;
      const past = prefill.block ?? this.#begin(generation, prefill);
      iteration.passes++;
      const steps = await this.#compute(prefill, past, Math.min(left, prefillTokens));
      iteration.computed += steps;
      // A tenant does not pay for the death of a worker, or for memory that ran out.
      if (!generation.interrupted) this.#shares.charge(generation, steps);
    }
  }

  /**
   * One forward pass over at most `tokens` tokens of a prefill.
   * @returns how many it computed
   */
  async #compute(prefill: Prefill, past: KvBlock, tokens: number): Promise<number> {
    const { kv, forward } = this.#decoder;
    const steps = Math.min(tokens, prefill.tokens.length - prefill.done);
    const ids = BigInt64Array.from(prefill.tokens.subarray(prefill.done, prefill.done + steps), BigInt);
    const { logits, present } = await forward({ ids, steps, lengths: [prefill.done], past });
    prefill.block = present;
    prefill.done += steps;
    if (prefill.done < prefill.tokens.length) return steps;
    // A copy, because a view would keep the logits of all positions in memory.
    prefill.logits = logits[0]?.slice();
    const slice = rightSlice(present, 0, prefill.done);
    this.#prefixes.add(prefill.tokens, slice, blockBytes(kv, present));
    return steps;
  }

  /**
   * @returns the first block of a prefill: a copy of the longest known prefix, or an empty block
   */
  #begin(generation: Generation, prefill: Prefill): KvBlock {
    const { kv } = this.#decoder;
    const known = this.#prefixes.find(prefill.tokens);
    prefill.done = known?.length ?? 0;
    generation.cached = prefill.done;
    return known === undefined ? { rows: 1, capacity: 0, arrays: emptyArrays(kv, 0) } : gather(kv, [known]);
  }

  /**
   * Gives the next token to each request with complete caches. From now on such a request decodes
   * in a batch.
   */
  #join(iteration: OpenIteration): void {
    for (const generation of this.#generations.values()) {
      const { prefills } = generation;
      if (prefills.length === 0 || prefills.some(({ logits }) => logits === undefined)) continue;
      try {
        const deltas = prefills.flatMap(({ choices, logits }) =>
          logits === undefined ? [] : choices.map((choice) => choice.advance(logits)),
        );
        this.#startDecoding(generation);
        this.#emit(generation, deltas, iteration);
      } catch (error) {
        this.#fail(generation, error, iteration);
      }
    }
  }

  /** Puts the unfinished choices of a request into a new batch. */
  #startDecoding(generation: Generation): void {
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
    this.#batches.push(new DecodeBatch(this.#decoder.kv, rows, slices));
  }

  /** Makes the next record of a request from the new tokens of its choices. */
  #emit(generation: Generation, deltas: readonly ChoiceDelta[], iteration: OpenIteration): void {
    // The request may have failed in this iteration through another of its choices. The main thread
    // may also have removed the request during the pass, and even added the key anew.
    if (this.#generations.get(generation.key) !== generation) return;
    const step = generation.step(deltas);
    iteration.steps.push(step);
    if (step.final) this.#generations.delete(generation.key);
  }

  #fail(generation: Generation, error: unknown, iteration: OpenIteration): void {
    if (this.#generations.get(generation.key) !== generation) return;
    this.remove(generation.key);
    const reason = error instanceof Error ? error.message : String(error);
    iteration.failed.push({ key: generation.key, reason: withoutPaths(reason) });
  }

  /**
   * Keeps the caches of a finished row if there is room, because the next turn of its conversation
   * begins with these tokens.
   */
  #remember(row: Row<Generation>, batch: DecodeBatch<Generation>): void {
    const { kv } = this.#decoder;
    const bytes = row.length * this.#perPosition;
    if (this.activeBytes + bytes > this.#limits.kvBytes) return;
    const block = gather(kv, [batch.slice(row)]);
    this.#prefixes.add(row.owner.tokensOf(row.choice).subarray(0, row.length), rightSlice(block, 0, row.length), bytes);
  }

  /**
   * Makes room for one more position in every row. First the engine forgets known prefixes. Then
   * the youngest requests give up their caches, and start again later.
   */
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
    for (const batch of this.#batches) batch.compact(true);
    this.#batches = this.#batches.filter(({ live }) => live.length > 0);
  }

  /** Bytes of the requests' caches, without known prefixes. */
  get activeBytes(): number {
    const batches = this.#batches.reduce((sum, { bytes }) => sum + bytes, 0);
    return [...this.#generations.values()].reduce((sum, generation) => sum + this.#prefillBytes(generation), batches);
  }

  #bytesOf(generation: Generation): number {
    const rows = this.#batches.flatMap(({ block, live }) =>
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
    return this.#batches.flatMap(({ rows }) => rows);
  }
}
