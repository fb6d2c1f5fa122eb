/**
 * The scheduling loop of a generator's lanes: takes on new streams, asks the engine for the next
 * iteration, and gives the records to the committer. The engine computes an iteration while this
 * thread handles the last iteration's records and Redis takes the records before. If Redis falls
 * behind, the engine pauses. plan.ts decides the next move, and stream.ts holds the state of each
 * stream.
 */
import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { RedisClocks } from "#shared/redis/clock.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { callGroups } from "#shared/redis/slots.js";
import { retrying, within } from "#shared/retry.js";
import type { Settler } from "../lane/settle.js";
import type { Exclusive } from "../lane/exclusive.js";
import type { Holdings, Held } from "../lane/holdings.js";
import type { StepTraces } from "../trace/step-traces.js";
import type { OutageGuard } from "../lane/outage-guard.js";
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import type { StreamQueue } from "#shared/queue/work/lane.js";
import type { Takeover } from "#shared/queue/work/streams/take-over.js";
import { StreamCounts } from "./counts.js";
import type { Alone } from "../lane/alone.js";
import { Calls } from "../tensors/calls.js";
import { CalledStreams, type StreamSink } from "./calls.js";
import { Committer, type StreamOwner } from "./committer.js";
import { mayAskAhead, nextMove, slotsFor, type LoopFacts } from "./plan.js";
import { prepareAll, type Prepared } from "./prepare.js";
import type { NewGeneration, TimedIteration } from "../engine/protocol.js";
import type { ServingGenerator } from "./load.js";
import { TokenPublisher } from "./publisher.js";
import { finishIn, sealed, succeeded } from "./settlement.js";
import { choicesOf, expiryOf, streamOf, waitingIn, type Stream } from "./stream.js";
import { Takeovers, type Turn } from "./takeover.js";
import { inspect, nobodyReads } from "./unread.js";

export interface StreamLoopParts {
  readonly queue: StreamQueue;
  readonly model: ServingGenerator;
  readonly holdings: Holdings;
  readonly settler: Settler;
  readonly clocks: RedisClocks;
  readonly outageGuard: OutageGuard;
  /** Shared by all lanes of this process. */
  readonly exclusive: Exclusive;
  readonly maxRunsAlone: number;
  /** Whether outcomes say how long their requests waited and ran, and in which worker. */
  readonly timings: boolean;
  /** Undefined if the worker makes no traces. */
  readonly traces: StepTraces | undefined;
  readonly log: Logger;
}

/** Longest wait for Redis to take records, in ms, before the loop looks for other work. */
const LAG_WAIT_MS = 1_000;
/**
 * After this long without a record from the engine, in ms, the loop looks a stream up in Redis.
 * Rounds of such lookups are as far apart.
 */
const INSPECT_MS = 1_000;

export class StreamLoop implements StreamOwner {
  readonly #parts: StreamLoopParts;
  readonly #publisher: TokenPublisher;
  readonly #committer: Committer;
  readonly #takeovers: Takeovers;
  readonly #counts: StreamCounts;
  /** The steps of ensembles that wait for slots. */
  readonly #calls = new Calls();
  readonly #called: CalledStreams;
  /** Every stream that has come to this worker and has not left, by its key. */
  readonly #streams = new Map<string, Stream>();
  /** Iterations under way in the engine, oldest first. */
  readonly #asked: Promise<TimedIteration>[] = [];
  /** The number of streams in the engine. */
  #generating = 0;
  /** Streams that wait to run alone, in the order of their runs. Some may be closed by then. */
  readonly #suspected: Stream[] = [];
  /** How long streams have run alone since the last iteration of other streams, in ms. */
  #aloneMs = 0;
  /** When to look up silent streams next, on `performance.now()`'s clock. */
  #inspectAt = 0;

  constructor(parts: StreamLoopParts) {
    this.#parts = parts;
    const { queue, settler, outageGuard, holdings, model, timings, traces, log } = parts;
    const counts = new StreamCounts(queue, settler.counts?.report);
    this.#counts = counts;
    counts.show({
      running: () => this.#generating,
      waiting: () =>
        holdings.countAt("waiting") + holdings.countAt("suspect") + this.#calls.waiting + waitingIn(this.#streams),
      kvBytes: model.kvBytes,
    });
    this.#publisher = new TokenPublisher({ redis: queue.redis, bus: settler.bus, log });
    this.#takeovers = new Takeovers({ queue, log, begun: (turn, verdict) => this.#begin(turn, verdict) });
    const publisher = this.#publisher;
    this.#committer = new Committer({ queue, settler, publisher, counts, outageGuard, timings, log, owner: this });
    this.#called = new CalledStreams({ model, counts, owner: this, traces });
  }

  /** Choices that this worker is busy with. */
  get slotsTaken(): number {
    return choicesOf(this.#streams);
  }

  /** Generates the text of an ensemble's step, beside other streams. */
  call(held: Held): void {
    this.#calls.add(this.#called.generationOf(held));
    this.#parts.holdings.arrived.notify();
  }

  /**
   * Begins the text of an ensemble's step by itself. Once the model has computed its prompt, the
   * request goes on beside others, as any stream does.
   */
  async callAlone(held: Held, alone: Alone): Promise<void> {
    if (!alone.isAlone) return this.call(held);
    const stream = streamOf(this.#called.generationOf(held), false);
    this.#streams.set(stream.key, stream);
    await this.#beginCalled(stream);
    while (stream.next === 0 && stream.state.kind === "generating") {
      this.#hear(await alone.during(() => this.#parts.model.host.iterate(stream.key)));
      this.#expire(performance.now());
    }
    alone.end();
  }

  /**
   * Runs until `signal` aborts. A stream in the engine then stops at a committed token, and stays
   * in the holdings.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { holdings, exclusive } = this.#parts;
    while (!signal.aborted) {
      const now = performance.now();
      this.#takeOn(holdings.suspects, "suspect", now);
      this.#takeOn(this.#calls.among(holdings.waiting), "fresh", now);
      this.#expire(now);
      if (now >= this.#inspectAt) this.#inspect(now);
      switch (nextMove(this.#facts())) {
        case "hear":
          await this.#hearNext(signal);
          break;
        case "run-alone":
          await exclusive.alone(() => this.#runNextAlone(signal));
          this.#aloneMs += performance.now() - now;
          break;
        case "ask":
          this.#ask();
          this.#askAhead(signal);
          await this.#hearNext(signal);
          break;
        case "wait-for-redis":
          await this.#committer.caughtUp.wait(now + LAG_WAIT_MS);
          break;
        case "wait-for-work":
          await holdings.arrived.wait(this.#nextDeadline());
      }
    }
    while (this.#asked.length > 0) await this.#hearNext(signal);
    await this.#committer.drained();
    this.#publisher.close();
  }

  /** Makes the engine forget the stream. Does nothing for a closed stream. */
  close(stream: Stream): void {
    if (stream.closed) return;
    if (this.#leave(stream)) this.#parts.model.host.remove(stream.key);
  }

  /**
   * Gives up a closed stream's entry, which is settled or another worker's. Frees the stream's
   * slots.
   */
  release({ key }: Stream): void {
    const { holdings } = this.#parts;
    this.#streams.delete(key);
    holdings.drop([key]);
    holdings.arrived.notify();
  }

  /**
   * Gives up a closed stream that may still be this worker's. The worker tries it again in a while.
   */
  leave({ key, held }: Stream): void {
    const { holdings } = this.#parts;
    this.#streams.delete(key);
    holdings.leave([held.delivery], performance.now());
    holdings.arrived.notify();
  }

  #facts(): LoopFacts {
    return {
      asked: this.#asked.length,
      generating: this.#generating,
      suspected: this.#suspected.length,
      aloneMs: this.#aloneMs,
      lag: this.#committer.lag,
    };
  }

  /**
   * Takes on waiting streams while slots are free. A stream past its deadline needs no slot,
   * because it ends at once unless its log has a token. Nor does a text that its ensemble needs no
   * more.
   */
  #takeOn(waiting: readonly Held[], origin: "fresh" | "suspect", now: number): void {
    const { queue, holdings, model, log } = this.#parts;
    const chosen: Stream[] = [];
    const slots = slotsFor(origin, model.slots);
    for (const held of waiting) {
      if (this.slotsTaken >= slots && held.expiresAt > now && held.call?.isOver() !== true) continue;
      const stream = streamOf(held, origin === "suspect");
      this.#streams.set(stream.key, stream);
      chosen.push(stream);
    }
    if (chosen.length === 0) return;
    if (origin === "suspect") {
      this.#takeovers.arrive(
        chosen.map(({ key }) => key),
        now,
      );
    }
    const taken = chosen.map(({ held }) => held);
    holdings.take(taken);
    this.#calls.take(taken);
    for (const stream of chosen) if (isCalled(stream)) void this.#beginCalled(stream);
    const ofLanes = chosen.filter((stream) => !isCalled(stream));
    for (const some of callGroups(queue.redis, ofLanes, ({ held }) => bucketTag(held.delivery.bucket))) {
      prepareAll(this.#parts, some, (stream, prepared) => this.#goOn(stream, prepared)).catch((error: unknown) =>
        log.error({ error: String(error) }, "requests could not be looked into"),
      );
    }
  }

  /**
   * Prepares the text of an ensemble's step. If the tokenizer is gone, so is the worker soon, and
   * another worker takes the ensemble's request.
   */
  async #beginCalled(stream: Stream): Promise<void> {
    const prepared = await this.#called.prepare(stream);
    if (!stream.closed && prepared.kind !== "drop") this.#goOn(stream, prepared);
  }

  #sinkOf(stream: Stream): StreamSink {
    return isCalled(stream) ? this.#called : this.#committer;
  }

  #goOn(stream: Stream, prepared: Prepared): void {
    switch (prepared.kind) {
      case "drop":
        return this.#drop(stream);
      case "ended":
        return this.#committer.acknowledge(stream);
      case "sealed":
        stream.figures.finish = finishIn(prepared.records);
        return this.#committer.settle(stream, sealed(stream.held, prepared.records, prepared.history));
      case "refuse":
        return this.#fail(stream, prepared.next, prepared.error);
      case "run": {
        const { generation, standsSince } = prepared;
        if (!stream.takenOver) return this.#join(stream, generation);
        stream.waitForTurn(generation);
        return this.#takeovers.add({ stream, generation, standsSince });
      }
    }
  }

  /** Continues a stream of another worker, whose turn has come. */
  #begin({ stream, generation }: Turn, verdict: Takeover): void {
    switch (verdict) {
      case "together":
        return this.#join(stream, generation);
      case "alone":
        stream.suspect(generation);
        this.#suspected.push(stream);
        return this.#parts.holdings.arrived.notify();
      case "ended":
        return this.#committer.acknowledge(stream);
      case "lost":
        return this.#drop(stream);
    }
  }

  /**
   * Leaves the stream to the worker that owns the entry. If this worker owns the entry, it tries
   * again later.
   */
  #drop(stream: Stream): void {
    this.close(stream);
    this.leave(stream);
  }

  #join(stream: Stream, generation: NewGeneration): void {
    stream.enterEngine(generation);
    this.#parts.settler.counts?.recovered(stream.held.delivery, stream.figures.joinedAt);
    stream.trace = this.#parts.traces?.beginStream(stream.held, generation.next);
    this.#generating++;
    this.#parts.model.host.add(generation);
    this.#parts.holdings.arrived.notify();
  }

  /** Closes the stream. @returns whether the engine had it */
  #leave(stream: Stream): boolean {
    const wasGenerating = stream.state.kind === "generating";
    if (wasGenerating) this.#generating--;
    stream.close();
    this.#takeovers.end(stream.key, performance.now());
    return wasGenerating;
  }

  #ask(): void {
    const { exclusive, model } = this.#parts;
    this.#asked.push(exclusive.share(() => model.host.iterate()));
  }

  #askAhead(signal: AbortSignal): void {
    while (!signal.aborted && mayAskAhead(this.#facts())) this.#ask();
  }

  async #hearNext(signal: AbortSignal): Promise<void> {
    const iteration = await this.#asked.shift();
    this.#aloneMs = 0;
    // First, so that the engine has its next question before this thread reads the answer.
    this.#askAhead(signal);
    if (iteration !== undefined) this.#hear(iteration);
  }

  #hear(iteration: TimedIteration): void {
    const { steps, failed, prefilled, ranMs } = iteration;
    this.#counts.iterated(iteration);
    const now = performance.now();
    const rows = steps.reduce((sum, { key }) => sum + (this.#streams.get(key)?.spec.sampling.choices ?? 0), 0);
    const msARow = Math.max(0, ranMs - prefilled.reduce((sum, { ms }) => sum + ms, 0)) / rows;
    for (const { key, ms } of prefilled) {
      const stream = this.#streams.get(key);
      if (stream !== undefined) stream.ranMs += ms;
    }
    for (const { key, index, record, final, history, tokens, cached, finish } of steps) {
      const stream = this.#streams.get(key);
      if (stream === undefined) continue;
      stream.ranMs += msARow * stream.spec.sampling.choices;
      if (!stream.advance(index, now)) continue;
      stream.trace?.heard(now, tokens);
      stream.figures.heard(now);
      if (index === 0) stream.figures.cached = cached;
      const bytes = Buffer.byteLength(record);
      stream.bytesOut += bytes;
      this.#takeovers.end(key, now);
      const taken = { index, record, bytes, tokens };
      if (final) {
        this.#leave(stream);
        stream.figures.finish = finish;
        const outcome = { kind: "result", body: Buffer.from(record) } as const;
        this.#sinkOf(stream).push(stream, taken, succeeded(stream.held, outcome, history));
      } else {
        this.#sinkOf(stream).push(stream, taken);
      }
    }
    for (const { key, reason } of failed) {
      const stream = this.#streams.get(key);
      if (stream?.state.kind !== "generating") continue;
      const { next } = stream.state;
      this.#leave(stream);
      this.#sinkOf(stream).fail(stream, next, new InferenceError("model_error", `onnx runtime error: ${reason}`));
    }
    this.#committer.flush();
  }

  /**
   * Computes the next record of the first stream that waits to run alone, while nothing else
   * computes in this process.
   */
  async #runNextAlone(signal: AbortSignal): Promise<void> {
    const { queue, model, settler, maxRunsAlone, log } = this.#parts;
    const stream = this.#suspected.shift();
    if (stream?.state.kind !== "suspected") return;
    const { generation } = stream.state;
    const { delivery } = stream.held;
    const { request } = delivery;
    let verdict: "run" | "poison" | "lost";
    const run = randomUUID();
    try {
      verdict = await retrying(() => beginAlone(queue, delivery, maxRunsAlone, run), { budgetMs: settler.patienceMs });
    } catch (error) {
      log.warn({ error: String(error) }, "a suspect will be tried again");
      verdict = "lost";
    }
    // An inspection may have closed the stream meanwhile.
    if (stream.closed) return;
    if (verdict === "lost") return this.#drop(stream);
    if (verdict === "poison") {
      log.error({ request }, "request set aside");
      const error = fixedError("poison_request", "usual");
      this.#fail(stream, generation.next, error);
      // The next suspect may end this process, so Redis must have the decisions first.
      await within(settler.patienceMs, this.#committer.drained());
      return;
    }
    this.#join(stream, generation);
    while (stream.next === generation.next && !signal.aborted) {
      this.#expire(performance.now());
      this.#hear(await model.host.iterate(delivery.key));
    }
    await within(settler.patienceMs, this.#committer.drained());
  }

  #expire(now: number): void {
    for (const stream of this.#streams.values()) {
      const { next } = stream;
      if (!stream.closed && stream.held.call?.isOver() === true) {
        this.#fail(stream, next ?? 0, fixedError("cancelled", "alreadyEnded"));
        continue;
      }
      if (next === undefined || expiryOf(stream) > now) continue;
      this.#fail(stream, next, fixedError("expired", next > 0 ? "beforeEnd" : "beforeResult"));
    }
  }

  #inspect(now: number): void {
    this.#inspectAt = now + INSPECT_MS;
    const silent = [...this.#streams.values()].filter(
      (stream) => !isCalled(stream) && stream.next !== undefined && now - stream.silentSince >= INSPECT_MS,
    );
    if (silent.length === 0) return;
    inspect(this.#parts, silent).then(
      ({ ended, unread }) => {
        for (const stream of ended) if (!stream.closed) this.#committer.acknowledge(stream);
        for (const stream of unread) if (stream.next !== undefined) this.#fail(stream, stream.next, nobodyReads());
      },
      (error: unknown) => this.#parts.log.debug({ error: String(error) }, "requests could not be inspected"),
    );
  }

  /** @param index of the error's record, which is the stream's next record */
  #fail(stream: Stream, index: number, error: InferenceError): void {
    // A stream that the engine never had has a trace, too.
    stream.trace ??= this.#parts.traces?.beginStream(stream.held, index);
    stream.figures.hasTokens = index > 0;
    this.#sinkOf(stream).fail(stream, index, error);
    this.#committer.flush();
  }

  /** When the loop must wake up without new work, on `performance.now()`'s clock. */
  #nextDeadline(): number {
    // A stream in preparation cannot end yet, and notifies the loop when it can.
    const known = [...this.#streams.values()].filter(({ next }) => next !== undefined);
    if (known.length === 0) return Infinity;
    return Math.min(this.#inspectAt, ...known.map(expiryOf));
  }
}

/** Whether an ensemble has called for the stream. */
function isCalled({ held }: Stream): boolean {
  return held.call !== undefined;
}
