/**
 * Controls a thread that parses large bodies, or prints large tensors as JSON, from the gateway's
 * main thread. The thread has one job at a time, so that a crash has a known cause; other jobs wait
 * here and get a new thread. `BodyMemory` limits the bytes of waiting bodies, and the results in
 * the queue limit the bytes of waiting tensors.
 */
import { Worker } from "node:worker_threads";
import type { ServedModel } from "#shared/contract/announcement.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { cells } from "#shared/metrics/cells.js";
import type { ParseAnswer, ParseQuestion } from "./parse-worker.js";
import type { Reading, ReadRequest } from "./read-request.js";

/** The thread's heap. A body within the limits of JSON takes less than a tenth of it. */
const maxHeapMb = 512;
/**
 * An idle thread ends after this time, in ms, because it holds some 20 MB and uncollected garbage.
 */
const idleMs = 5_000;
/**
 * Most bytes of a buffer that several bodies may share, such as Node's pool or the bytes of one
 * read from a socket.
 */
const sharedBytes = 64 * 1024;

interface Job {
  /** Makes the question, and lists the memory that moves to the thread with it. */
  readonly ask: () => [ParseQuestion, ArrayBuffer[]];
  readonly stillWanted: () => void;
  readonly answered: (answer: ParseAnswer) => void;
  readonly reject: (error: unknown) => void;
}

export class ParseThread {
  readonly #heapMb: number;
  readonly #restarts = cells.counter("baton_thread_restarts_total", { thread: "parse" });
  readonly #waiting: Job[] = [];
  #job: Job | undefined;
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(heapMb = maxHeapMb) {
    this.#heapMb = heapMb;
  }

  /**
   * Parses a body in the thread.
   * @param body not usable afterwards, because its memory may move to the thread
   * @param stillWanted called before the thread begins; throws if the client has gone
   * @throws InferenceError
   */
  read(body: Buffer, reading: Reading, stillWanted: () => void): Promise<ReadRequest> {
    return this.#done(
      () => questionOf(body, reading),
      stillWanted,
      (answer) => {
        if (answer.kind === "read") return requestOf(answer);
        throw new TypeError(`a body was answered with '${answer.kind}'`);
      },
    );
  }

  /**
   * Prints a tensor's elements as JSON in the thread.
   * @returns the text in UTF-8
   * @throws InferenceError
   */
  print(tensor: Tensor): Promise<Buffer> {
    const ask = (): [ParseQuestion, ArrayBuffer[]] => {
      const data = new Uint8Array(tensor.data);
      return [{ kind: "print", tensor: { ...tensor, data } }, [data.buffer]];
    };
    return this.#done(
      ask,
      () => undefined,
      (answer) => {
        if (answer.kind === "printed")
          return Buffer.from(answer.text.buffer, answer.text.byteOffset, answer.text.length);
        throw new TypeError(`a tensor was answered with '${answer.kind}'`);
      },
    );
  }

  #done<T>(ask: Job["ask"], stillWanted: () => void, read: (answer: ParseAnswer) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const answered = (answer: ParseAnswer) => {
        if (answer.kind === "refused") reject(new InferenceError(answer.code, answer.message));
        else if (answer.kind === "failed") reject(new Error(answer.reason));
        else resolve(read(answer));
      };
      this.#waiting.push({ ask, stillWanted, answered, reject });
      this.#proceed();
    });
  }

  async close(): Promise<void> {
    const job = this.#job;
    this.#job = undefined;
    for (const { reject } of [...(job === undefined ? [] : [job]), ...this.#waiting.splice(0)]) {
      reject(fixedError("unavailable", "stopping"));
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
        this.#thread.postMessage(...job.ask());
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
    // The thread does not take over options of the process, such as a debugger's.
    const thread = new Worker(new URL("./parse-worker.js", import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMb },
    });
    let failure: Error | undefined;
    thread.unref();
    thread.on("message", (answer: ParseAnswer) => this.#settle((job) => job.answered(answer)));
    thread.on("error", (error: Error) => {
      failure = error;
    });
    thread.on("messageerror", () => void thread.terminate());
    thread.on("exit", (code) => {
      if (this.#thread !== thread) return;
      cells.add(this.#restarts);
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

/**
 * Moves the memory of the body to the thread if the body has that memory alone; else copies the
 * body.
 */
function questionOf(body: Buffer, reading: Reading): [ParseQuestion, ArrayBuffer[]] {
  const model = withoutConfig(reading.model);
  const others = reading.others.map(withoutConfig);
  const { buffer } = body;
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength > sharedBytes;
  const bytes = isOwn ? new Uint8Array(buffer, body.byteOffset, body.length) : new Uint8Array(body);
  return [{ kind: "read", body: bytes, reading: { ...reading, model, others } }, [bytes.buffer]];
}

/**
 * Returns the model without its configuration, which the comparison with a request does not need.
 */
function withoutConfig(model: ServedModel): ServedModel {
  return { ...model, config: {} };
}

function requestOf({ request, inputs }: Extract<ParseAnswer, { kind: "read" }>): ReadRequest {
  const tensors = inputs.map((tensor) => {
    const { buffer, byteOffset, length } = tensor.data;
    return { ...tensor, data: Buffer.from(buffer, byteOffset, length) };
  });
  return { ...request, valid: { ...request.valid, inputs: tensors } };
}

function refusalOf(failure: Error): Error {
  if ((failure as NodeJS.ErrnoException).code !== "ERR_WORKER_OUT_OF_MEMORY") return failure;
  return fixedError("payload_too_large", "parseMemory", { cause: failure });
}
