/**
 * The main thread's side of a tokenizer's thread. Tenants share the thread by weight, in bytes of
 * their prompts, because nobody knows a prompt's tokens before. The thread answers prompts in their
 * order, so the host knows which prompt hangs. The host then ends the thread, refuses that prompt,
 * and sends the other prompts to a new thread.
 */
import { Worker } from "node:worker_threads";
import type { PromptSpec } from "#shared/contract/generation.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { cells } from "#shared/metrics/cells.js";
import { Shares, type Sharer } from "../shares/shares.js";
import { checkBounds } from "./bounds.js";
import type { EncodeRequest, TokenizerMessage, TokenizerOptions } from "./protocol.js";

export interface TokenizerHost {
  /**
   * @param sharer whose turn it is
   * @param history the tokens of the conversation so far, with which the result begins
   * @returns the token ids of the history and the prompt
   * @throws InferenceError `invalid_argument` for a prompt that the tokenizer or the template
   * refuses, `unavailable` if the worker is stopping
   */
  encode(sharer: Sharer, prompt: PromptSpec, history: Int32Array | undefined): Promise<Int32Array>;
  close(): Promise<void>;
}

interface Limits {
  /** Longest time for a prompt, in ms. The largest prompt, a megabyte, takes a few seconds. */
  readonly encodeMs: number;
  /** Longest time to read the tokenizer and try the template, in ms. */
  readonly loadMs: number;
}

const LIMITS: Limits = { encodeMs: 20_000, loadMs: 120_000 };

/**
 * Most prompts in the thread at a time. With several, the thread finds its next prompt without a
 * wait for the main thread.
 */
const MAX_IN_THREAD = 16;
/**
 * Most bytes of prompts in the thread, unless one prompt is larger: some 50 ms of work. The next
 * prompt of another tenant waits for what is in the thread.
 */
const MAX_BYTES_IN_THREAD = 16_384;

interface PendingPrompt extends Sharer {
  readonly bytes: number;
  readonly request: EncodeRequest;
  readonly resolve: (tokens: Int32Array) => void;
  readonly reject: (error: InferenceError) => void;
}

/**
 * Starts the thread and waits until it is ready.
 * @param onFatal runs with the reason when no new thread can start
 * @throws Error with the reason if the tokenizer or the template is broken
 */
export async function startTokenizer(
  options: TokenizerOptions,
  onFatal: (reason: string) => void,
  limits: Limits = LIMITS,
): Promise<TokenizerHost> {
  const host = new Host(options, onFatal, limits);
  await host.start();
  return host;
}

class Host implements TokenizerHost {
  private readonly options: TokenizerOptions;
  private readonly onFatal: (reason: string) => void;
  private readonly limits: Limits;
  /** Prompts that the thread does not have yet. */
  private readonly waiting: PendingPrompt[] = [];
  private readonly shares = new Shares();
  /** Undefined while no thread is ready. */
  private thread: Worker | undefined;
  /** Undefined while no thread is loading. */
  private loading: Worker | undefined;
  /** Prompts in the thread, which works on the first of these. */
  private readonly inThread: PendingPrompt[] = [];
  /** Ends the thread when its first prompt takes too long. */
  private watchdog: NodeJS.Timeout | undefined;
  private readonly restarts = cells.counter("baton_thread_restarts_total", { thread: "tokenizer" });
  private state: "open" | "closed" | "failed" = "open";

  constructor(options: TokenizerOptions, onFatal: (reason: string) => void, limits: Limits) {
    const { name, tokenizerFile, tokenizerConfig, chatTemplate, vocabSize, eos, bos } = options;
    this.options = { name, tokenizerFile, tokenizerConfig, chatTemplate, vocabSize, eos, bos };
    this.onFatal = onFatal;
    this.limits = limits;
  }

  async encode(
    { level, tenant, weight }: Sharer,
    prompt: PromptSpec,
    history: Int32Array | undefined,
  ): Promise<Int32Array> {
    const bytes = checkBounds(prompt);
    const continues = history !== undefined && history.length > 0;
    const tokens = await new Promise<Int32Array>((resolve, reject) => {
      this.waiting.push({ level, tenant, weight, bytes, request: { prompt, continues }, resolve, reject });
      this.sendWaiting();
    });
    return continues ? concatenated(history, tokens) : tokens;
  }

  async close(): Promise<void> {
    this.state = "closed";
    this.rejectAll(fixedError("unavailable", "workerStopping"));
    await Promise.all([this.thread?.terminate(), this.loading?.terminate()]);
  }

  /** @throws Error with the reason */
  async start(): Promise<void> {
    // The thread must not inherit options of the process, such as a debugger's.
    const thread = new Worker(new URL("./thread.js", import.meta.url), { workerData: this.options, execArgv: [] });
    this.loading = thread;
    const failure = await new Promise<string | undefined>((resolve) => {
      const watchdog = setTimeout(() => resolve("the tokenizer takes too long to load"), this.limits.loadMs);
      thread.on("message", (message: TokenizerMessage) => {
        clearTimeout(watchdog);
        if (message.kind === "ready") resolve(undefined);
        else if (message.kind === "failed") resolve(message.reason);
        else if (this.thread === thread) this.onAnswer(message);
      });
      thread.on("error", (error: Error) => resolve(error.message));
      thread.on("exit", (code) => {
        clearTimeout(watchdog);
        resolve(`the tokenizer's thread exited with ${code}`);
        if (this.thread === thread) this.replaceThread("takesTooMuchMemory");
      });
    });
    this.loading = undefined;
    if (failure !== undefined || this.state === "closed") {
      await thread.terminate();
      throw new Error(failure ?? "the tokenizer is closed");
    }
    this.thread = thread;
    this.sendWaiting();
  }

  private sendWaiting(): void {
    if (this.state === "failed") return this.rejectAll(fixedError("unavailable", "tokenizer"));
    if (this.state === "closed") return this.rejectAll(fixedError("unavailable", "workerStopping"));
    while (this.thread !== undefined && this.hasRoom()) {
      const pending = this.takeNext();
      if (pending === undefined) return;
      this.inThread.push(pending);
      if (this.inThread.length === 1) this.watch();
      this.thread.postMessage(pending.request, []);
    }
  }

  private hasRoom(): boolean {
    const bytes = this.inThread.reduce((sum, pending) => sum + pending.bytes, 0);
    return this.inThread.length < MAX_IN_THREAD && (this.inThread.length === 0 || bytes < MAX_BYTES_IN_THREAD);
  }

  /** Takes the prompt whose turn is next out of those that wait. */
  private takeNext(): PendingPrompt | undefined {
    const next = this.shares.inTurn(this.waiting)[0]?.[0];
    if (next === undefined) {
      if (this.inThread.length === 0) this.shares.clear();
      return undefined;
    }
    this.waiting.splice(this.waiting.indexOf(next), 1);
    this.shares.charge(next, next.bytes);
    return next;
  }

  private watch(): void {
    const hung = (): void => this.replaceThread("takesTooLong");
    this.watchdog = setTimeout(hung, this.limits.encodeMs);
  }

  private onAnswer(message: Extract<TokenizerMessage, { kind: "encoded" | "refused" }>): void {
    const pending = this.takeFirst();
    if (this.inThread.length > 0) this.watch();
    if (message.kind === "encoded") pending?.resolve(message.tokens);
    else pending?.reject(new InferenceError(message.code, message.message));
    this.sendWaiting();
  }

  /** Takes the prompt that the thread works on, or has just answered. */
  private takeFirst(): PendingPrompt | undefined {
    clearTimeout(this.watchdog);
    return this.inThread.shift();
  }

  /** Ends the thread because of its present prompt, and refuses that prompt with this text. */
  private replaceThread(text: "takesTooLong" | "takesTooMuchMemory"): void {
    const { thread } = this;
    this.thread = undefined;
    const pending = this.takeFirst();
    pending?.reject(fixedError("invalid_argument", text));
    this.waiting.unshift(...this.inThread.splice(0));
    if (this.state !== "open") return;
    cells.add(this.restarts);
    void thread?.terminate();
    this.start().catch((error: unknown) => {
      if (this.state !== "open") return;
      this.state = "failed";
      this.sendWaiting();
      this.onFatal(
        `the tokenizer could not be started again: ${error instanceof Error ? error.message : String(error)}`,
      );
    });
  }

  private rejectAll(error: InferenceError): void {
    clearTimeout(this.watchdog);
    for (const pending of [...this.inThread.splice(0), ...this.waiting.splice(0)]) pending.reject(error);
  }
}

function concatenated(history: Int32Array, tokens: Int32Array): Int32Array {
  const all = new Int32Array(history.length + tokens.length);
  all.set(history);
  all.set(tokens, history.length);
  return all;
}
