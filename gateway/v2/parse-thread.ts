/**
 * The gateway's end of the thread that parses large bodies. It has one body at a time, so it is
 * known whose body ended it; the others wait here and go to a new thread. How many bytes may wait
 * is limited where bodies are received (body-memory.ts).
 */
import { Worker } from "node:worker_threads";
import { InferenceError } from "#shared/errors.js";
import type { ParseAnswer, ParseQuestion } from "./parse-protocol.js";
import type { Reading, ReadRequest } from "./read-request.js";

/** A body within the limits of JSON takes less than a tenth of it. */
const maxHeapMb = 512;
/** An idle thread holds some 20 MB, and what it has not yet cleaned up. */
const idleMs = 5_000;
/** Memory that bodies share, such as Node's pool or what one read brought, is never longer. */
const sharedBytes = 64 * 1024;

interface Job {
  readonly body: Buffer;
  readonly reading: Reading;
  readonly stillWanted: () => void;
  readonly resolve: (request: ReadRequest) => void;
  readonly reject: (error: unknown) => void;
}

export class ParseThread {
  readonly #heapMb: number;
  readonly #waiting: Job[] = [];
  #job: Job | undefined;
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(heapMb = maxHeapMb) {
    this.#heapMb = heapMb;
  }

  /**
   * @param body of which nothing is left here afterwards
   * @param stillWanted throws where nobody waits for the result any more
   * @throws InferenceError
   */
  read(body: Buffer, reading: Reading, stillWanted: () => void): Promise<ReadRequest> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ body, reading, stillWanted, resolve, reject });
      this.#proceed();
    });
  }

  async close(): Promise<void> {
    const job = this.#job;
    this.#job = undefined;
    for (const { reject } of [...(job === undefined ? [] : [job]), ...this.#waiting.splice(0)]) {
      reject(new InferenceError("unavailable", "the gateway is stopping"));
    }
    await this.#stop();
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  }

  #proceed(): void {
    while (this.#job === undefined) {
      const job = this.#waiting.shift();
      if (job === undefined) return this.#rest();
      try {
        job.stillWanted();
        clearTimeout(this.#idle);
        this.#thread ??= this.#start();
        this.#thread.postMessage(...questionOf(job));
        this.#job = job;
      } catch (error) {
        job.reject(error);
      }
    }
  }

  #rest(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.#stop(), idleMs).unref();
  }

  #start(): Worker {
    // Options of the process, such as a debugger's, are not the thread's.
    const thread = new Worker(new URL("./parse-worker.js", import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMb },
    });
    let failure: Error | undefined;
    thread.unref();
    thread.on("message", (answer: ParseAnswer) => this.#settle((job) => settle(job, answer)));
    thread.on("error", (error: Error) => {
      failure = error;
    });
    thread.on("messageerror", () => void thread.terminate());
    thread.on("exit", (code) => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#settle(({ reject }) => reject(refusalOf(failure ?? new Error(`the parsing thread exited with ${code}`))));
    });
    return thread;
  }

  #settle(done: (job: Job) => void): void {
    const job = this.#job;
    this.#job = undefined;
    if (job !== undefined) done(job);
    this.#proceed();
  }
}

/** The body's memory goes along if it is the body's alone, and else its bytes do. */
function questionOf({ body, reading }: Job): [ParseQuestion, ArrayBuffer[]] {
  const model = { ...reading.model, config: {} };
  const { buffer } = body;
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength > sharedBytes;
  const bytes = isOwn ? new Uint8Array(buffer, body.byteOffset, body.length) : new Uint8Array(body);
  return [{ body: bytes, reading: { ...reading, model } }, [bytes.buffer]];
}

function settle({ resolve, reject }: Job, answer: ParseAnswer): void {
  if (answer.kind === "refused") return reject(new InferenceError(answer.code, answer.message));
  if (answer.kind === "failed") return reject(new Error(answer.reason));
  const inputs = answer.inputs.map((tensor) => {
    const { buffer, byteOffset, length } = tensor.data;
    return { ...tensor, data: Buffer.from(buffer, byteOffset, length) };
  });
  return resolve({ ...answer.request, valid: { ...answer.request.valid, inputs } });
}

function refusalOf(failure: Error): Error {
  if ((failure as NodeJS.ErrnoException).code !== "ERR_WORKER_OUT_OF_MEMORY") return failure;
  return new InferenceError("payload_too_large", "the request body takes too much memory to parse", { cause: failure });
}
