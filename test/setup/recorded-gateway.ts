/** The gateway's HTTP edge with generators whose records a test writes: what is in a log is read from there, and what comes later when the test appends it. */
import { startEchoGateway, announcementOf, servedModel, type EchoGateway } from "./echo-gateway.js";
import { directoryOf } from "../../gateway/models.js";
import type { GenerationRequest, OpenStream, StreamRecord } from "../../gateway/inference.js";
import type { ServerOptions } from "../../gateway/server.js";
import { recordOf } from "../../gateway/stream/records.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { ChoiceDelta, TokenRecord } from "#shared/contract/generation.js";
import type { ErrorCode } from "#shared/errors.js";

type Generator = NonNullable<ServedModel["generator"]>;

const text = (name: string): ServedModel["inputs"] => [{ name, datatype: "BYTES", dims: [1] }];

export const talk: Generator = {
  contextLength: 4096,
  vocabSize: 1000,
  chat: true,
  maxChoices: 8,
  maxIdleMs: 60_000,
  defaults: {},
};

export function generatorModel(name: string, generator: Partial<Generator> = {}): ServedModel {
  return servedModel(name, {
    platform: "onnxruntime_generator",
    inputs: text("text_input"),
    outputs: text("text_output"),
    generator: { ...talk, ...generator },
    digest: "0123456789abcdef",
  });
}

/** A log that grows, and everybody who reads it. */
export class RecordedStream implements OpenStream {
  readonly records: TokenRecord[] = [];
  cancelled = false;
  readers = 0;
  #wake: (() => void)[] = [];

  constructor(
    readonly id: string,
    readonly request: GenerationRequest,
  ) {}

  append(...records: TokenRecord[]): this {
    this.records.push(...records);
    this.#wakeAll();
    return this;
  }

  async *read(from: number, signal: AbortSignal): AsyncGenerator<StreamRecord[], void> {
    const onAbort = (): void => this.#wakeAll();
    signal.addEventListener("abort", onAbort);
    this.readers++;
    this.#wakeAll();
    try {
      for (let index = from; !signal.aborted;) {
        const record = this.records[index];
        if (record === undefined) await new Promise<void>((resolve) => this.#wake.push(resolve));
        else {
          yield [recordOf(index, JSON.stringify(record))];
          if (record.final === true) return;
          index++;
        }
      }
    } finally {
      this.readers--;
      signal.removeEventListener("abort", onAbort);
      this.#wakeAll();
    }
  }

  cancel(): Promise<void> {
    this.cancelled = true;
    this.#wakeAll();
    return Promise.resolve();
  }

  /** Resolves when `state` holds; it is looked at whenever something happens to the stream. */
  async until(state: (stream: RecordedStream) => boolean): Promise<void> {
    while (!state(this)) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  #wakeAll(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const resolve of waiting) resolve();
  }
}

export interface RecordedGateway extends EchoGateway {
  /** Every generation that was admitted, oldest first. */
  readonly streams: RecordedStream[];
  /** What each next generation is answered with; by default `hello`. Throws to refuse it. */
  script: (request: GenerationRequest, stream: RecordedStream) => void;
  /** The one generation there was. */
  only(): RecordedStream;
  /** Resolves with the next generation that is admitted. */
  next(): Promise<RecordedStream>;
}

export async function startRecordedGateway(
  models: readonly ServedModel[] = [],
  server: Partial<ServerOptions> = {},
): Promise<RecordedGateway> {
  const directory = directoryOf([
    announcementOf([generatorModel("talk"), generatorModel("mute", { chat: false }), servedModel("tensor"), ...models]),
  ]);
  const streams: RecordedStream[] = [];
  let arrivals: ((stream: RecordedStream) => void)[] = [];
  const edge = await startEchoGateway(
    {
      directory: () => directory,
      generate: async (request) => {
        await Promise.resolve();
        const stream = new RecordedStream(`r${streams.length}.0.1.${request.model.name}`, request);
        gateway.script(request, stream);
        streams.push(stream);
        for (const arrived of arrivals) arrived(stream);
        arrivals = [];
        return stream;
      },
    },
    1,
    server,
  );
  const gateway: RecordedGateway = Object.assign(edge, {
    streams,
    script: hello,
    only: () => {
      const [stream, ...others] = streams;
      if (stream === undefined || others.length > 0) throw new Error(`${streams.length} generations were admitted`);
      return stream;
    },
    next: () => new Promise<RecordedStream>((resolve) => arrivals.push(resolve)),
  });
  return gateway;
}

export type DeltaParts = Partial<Pick<ChoiceDelta, "index" | "tokens" | "logprobs" | "finish_reason">>;

export function delta(words: string, parts: DeltaParts = {}): ChoiceDelta {
  return { index: 0, text: words, tokens: [1], ...parts };
}

export function record(index: number, ...choices: ChoiceDelta[]): TokenRecord {
  return { index, choices };
}

export function finalRecord(index: number, completion: number, ...choices: ChoiceDelta[]): TokenRecord {
  const usage = { prompt_tokens: 3, completion_tokens: completion };
  return { index, choices, final: true, reason: "finished", usage };
}

export function failedRecord(index: number, code: ErrorCode, message: string): TokenRecord {
  return { index, choices: [], final: true, reason: "error", error: { code, message } };
}

/** `hello` is held back for a step, as a text that may begin a stop string is. */
export function hello(_: unknown, stream: RecordedStream): void {
  stream.append(
    record(0, delta("")),
    record(1, delta("Hel")),
    record(2, delta("lo, ")),
    finalRecord(3, 4, delta("you!", { finish_reason: "stop" })),
  );
}

export interface SentEvent {
  readonly id: string | undefined;
  readonly data: string;
}

export function eventsOf(body: string): SentEvent[] {
  return body
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      return { id: lines.find((line) => line.startsWith("id: "))?.slice(4), data: data.join("\n") };
    });
}

export const jsonOf = <T = Record<string, unknown>>(events: readonly SentEvent[]): T[] =>
  events.filter(({ data }) => data !== "[DONE]").map(({ data }) => JSON.parse(data) as T);
