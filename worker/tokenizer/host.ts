/**
 * The main thread's end of a tokenizer's thread. Prompts are answered in their order, so it is known which of them hangs: the thread is ended, that prompt is refused, and
 * the others go to a new thread.
 */
import { Worker } from "node:worker_threads";
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import { checkBounds } from "./bounds.js";
import type { EncodeRequest, TokenizerMessage, TokenizerOptions } from "./protocol.js";

export interface TokenizerHost {
  /**
   * @param history tokens that the prompt's follow; they stand at the beginning of the result.
   * @throws InferenceError invalid_argument for prompts that the tokenizer or the template refuses
   */
  encode(prompt: PromptSpec, history: Int32Array | undefined): Promise<Int32Array>;
  close(): Promise<void>;
}

interface Limits {
  /** Of one prompt. A megabyte takes a few seconds at the most. */
  readonly encodeMs: number;
  /** Of reading the tokenizer and trying the template. */
  readonly loadMs: number;
}

const LIMITS: Limits = { encodeMs: 20_000, loadMs: 120_000 };

/** Prompts that the thread has at a time: it finds the next one when it has answered one, and does not wait for this thread to come to it. */
const AHEAD = 16;

interface Job {
  readonly request: EncodeRequest;
  readonly resolve: (tokens: Int32Array) => void;
  readonly reject: (error: InferenceError) => void;
}

/** @param onFatal no thread can be started any more. @throws Error with the reason when the tokenizer or the template is broken */
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
  private readonly waiting: Job[] = [];
  /** Undefined while none is ready. */
  private thread: Worker | undefined;
  /** Undefined while none is loading. */
  private loading: Worker | undefined;
  /** What the thread has: it is at the first of them. */
  private readonly sent: Job[] = [];
  private watchdog: NodeJS.Timeout | undefined;
  private state: "open" | "closed" | "failed" = "open";

  constructor(options: TokenizerOptions, onFatal: (reason: string) => void, limits: Limits) {
    const { name, tokenizerFile, tokenizerConfig, chatTemplate, vocabSize, eos, bos } = options;
    this.options = { name, tokenizerFile, tokenizerConfig, chatTemplate, vocabSize, eos, bos };
    this.onFatal = onFatal;
    this.limits = limits;
  }

  async encode(prompt: PromptSpec, history: Int32Array | undefined): Promise<Int32Array> {
    checkBounds(prompt);
    const continues = history !== undefined && history.length > 0;
    const tokens = await new Promise<Int32Array>((resolve, reject) => {
      this.waiting.push({ request: { prompt, continues }, resolve, reject });
      this.proceed();
    });
    return continues ? joined(history, tokens) : tokens;
  }

  async close(): Promise<void> {
    this.state = "closed";
    this.refuseAll(new InferenceError("unavailable", "the worker is stopping"));
    await Promise.all([this.thread?.terminate(), this.loading?.terminate()]);
  }

  /** @throws Error with the reason */
  async start(): Promise<void> {
    // Options of the process, such as a debugger's, are not the thread's.
    const thread = new Worker(new URL("./thread.js", import.meta.url), { workerData: this.options, execArgv: [] });
    this.loading = thread;
    const failure = await new Promise<string | undefined>((resolve) => {
      const watchdog = setTimeout(() => resolve("the tokenizer takes too long to load"), this.limits.loadMs);
      thread.on("message", (message: TokenizerMessage) => {
        clearTimeout(watchdog);
        if (message.kind === "ready") resolve(undefined);
        else if (message.kind === "failed") resolve(message.reason);
        else if (this.thread === thread) this.answered(message);
      });
      thread.on("error", (error: Error) => resolve(error.message));
      thread.on("exit", (code) => {
        clearTimeout(watchdog);
        resolve(`the tokenizer's thread exited with ${code}`);
        if (this.thread === thread) this.replace("the prompt takes too much memory to tokenise");
      });
    });
    this.loading = undefined;
    if (failure !== undefined || this.state === "closed") {
      await thread.terminate();
      throw new Error(failure ?? "the tokenizer is closed");
    }
    this.thread = thread;
    this.proceed();
  }

  private proceed(): void {
    if (this.state === "failed") return this.refuseAll(new InferenceError("unavailable", "the tokenizer has failed"));
    if (this.state === "closed") return this.refuseAll(new InferenceError("unavailable", "the worker is stopping"));
    while (this.thread !== undefined && this.sent.length < AHEAD) {
      const job = this.waiting.shift();
      if (job === undefined) return;
      this.sent.push(job);
      if (this.sent.length === 1) this.watch();
      this.thread.postMessage(job.request, []);
    }
  }

  private watch(): void {
    const hung = (): void => this.replace("the prompt takes too long to tokenise");
    this.watchdog = setTimeout(hung, this.limits.encodeMs);
  }

  private answered(message: Extract<TokenizerMessage, { kind: "encoded" | "refused" }>): void {
    const job = this.finish();
    if (this.sent.length > 0) this.watch();
    if (message.kind === "encoded") job?.resolve(message.tokens);
    else job?.reject(new InferenceError(message.code, message.message));
    this.proceed();
  }

  private finish(): Job | undefined {
    clearTimeout(this.watchdog);
    return this.sent.shift();
  }

  /** The thread is of no use any more, because of what it was at. */
  private replace(reason: string): void {
    const { thread } = this;
    this.thread = undefined;
    const job = this.finish();
    job?.reject(new InferenceError("invalid_argument", reason));
    this.waiting.unshift(...this.sent.splice(0));
    if (this.state !== "open") return;
    void thread?.terminate();
    this.start().catch((error: unknown) => {
      if (this.state !== "open") return;
      this.state = "failed";
      this.proceed();
      this.onFatal(
        `the tokenizer could not be started again: ${error instanceof Error ? error.message : String(error)}`,
      );
    });
  }

  private refuseAll(error: InferenceError): void {
    clearTimeout(this.watchdog);
    for (const job of [...this.sent.splice(0), ...this.waiting.splice(0)]) job.reject(error);
  }
}

function joined(history: Int32Array, tokens: Int32Array): Int32Array {
  const all = new Int32Array(history.length + tokens.length);
  all.set(history);
  all.set(tokens, history.length);
  return all;
}
