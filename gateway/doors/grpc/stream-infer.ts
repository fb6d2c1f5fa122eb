/**
 * ModelStreamInfer: any number of requests on one stream, begun as they come. The gateway admits
 * the steps of a sequence in the order in which the stream brought them, because admissions of a
 * sequence stay in the order of their calls. The answers of ordinary models leave in the order of
 * their requests, those of generators as they come.
 */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { hasStreams, type ServedModel } from "#shared/contract/announcement.js";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { refusalOf } from "../../admission/inference.js";
import { cancelOnDisconnect, wholeUnderKey } from "../../generation/leaving.js";
import { readRecord } from "../../generation/read-answer.js";
import { partsOf, type AnswerInParts } from "../../formats/kserve/parts.js";
import { writeFault, writePart, type InferAnswer } from "../../formats/kserve/grpc/write-infer.js";
import { keepsOrder } from "../../formats/kserve/queue-policy.js";
import { tensorRequest } from "../../formats/kserve/tensor-request.js";
import type { Exchange } from "./exchange.js";
import { readCall, tensorAnswer, type InferParts, type ReadCall } from "./infer.js";
import { StreamSender } from "./sender.js";
import { InFlight } from "./in-flight.js";
import { Leaving } from "./leaving.js";
import { codeOf, statusOf, textOf, toldOf } from "./status.js";

export interface StreamParts extends InferParts {
  /** As many steps of a sequence may wait. */
  readonly sequenceBacklog: number;
  /** @returns undefined if a request may begin now, else a promise that never rejects */
  readonly turn: (exchange: Exchange) => Promise<void> | undefined;
  /** Whether the gateway itself cuts its connections. */
  readonly isCut: () => boolean;
}

/** A request of a stream, as its answers name it. */
interface Named {
  /** The request's own id; empty if the client gives none, or if it cannot be read. */
  readonly id: string;
  /** Model and version as the client named them, once the request was accepted. */
  readonly accepted?: { readonly model: string; readonly version: string };
  /** The index of the answer; absent without a key. */
  readonly index?: number | undefined;
}

/** Ends a stream with its first failure, in place of a message about it. */
const STRICT = "triton_grpc_error";
/** Baton's own: gives up the order between requests, so that a slow one holds nobody up. */
const UNORDERED = "baton-unordered";
/** The line of all requests that have one answer; no model has this name. */
const ALL = "";

export class StreamInfer {
  readonly #call: ServerDuplexStream<Buffer, Buffer>;
  readonly #exchange: Exchange;
  readonly #parts: StreamParts;
  readonly #sender: StreamSender;
  readonly #client: Leaving;
  readonly #isStrict: boolean;
  readonly #isOrdered: boolean;
  readonly #inFlight: InFlight;
  /** By line: resolves when all answers that have their place in it so far have been sent. */
  readonly #lines = new Map<string, Promise<void>>();
  #hasEnded = false;
  #isDraining = false;

  constructor(call: ServerDuplexStream<Buffer, Buffer>, exchange: Exchange, parts: StreamParts) {
    this.#call = call;
    this.#exchange = exchange;
    this.#parts = parts;
    this.#client = new Leaving(parts.isCut);
    this.#isStrict = exchange.header(STRICT) === "true";
    this.#isOrdered = exchange.header(UNORDERED) !== "true";
    this.#inFlight = new InFlight(parts.sequenceBacklog);
    this.#sender = new StreamSender(call, exchange);
    call.once("cancelled", () => this.#leave());
  }

  /** Answers the stream's requests until the client has sent all, or has left. Never throws. */
  async run(): Promise<void> {
    try {
      // The end of the requests must not end the answers.
      for await (const message of this.#call.iterator({ destroyOnReturn: false })) {
        if (this.#hasEnded || this.#isDraining) return;
        const bytes = message as Buffer;
        this.#exchange.bytesIn += bytes.length;
        await this.#take(bytes);
        await this.#inFlight.room();
        await this.#sender.room();
      }
    } catch (error) {
      // The stream of a client that has left ends with an error of node's.
      if (!this.#hasEnded && !this.#call.cancelled) return this.fail(error);
      return;
    }
    await this.#inFlight.none();
    this.#end();
  }

  /** Ends the stream with an error, which is its status, and gives up its requests. */
  fail(error: unknown): void {
    if (this.#hasEnded) return;
    this.#client.leave();
    this.#endWith(error);
  }

  /** The same without giving anything up, because the fault is not the client's. */
  stop(error: InferenceError): void {
    if (!this.#hasEnded) this.#endWith(error);
  }

  #endWith(error: unknown): void {
    this.#hasEnded = true;
    this.#call.emit("error", statusOf(error, this.#exchange.requestId));
    this.#exchange.end(codeOf(error));
  }

  /** Takes no further requests, and ends the stream once those under way have their answers. */
  async drain(error: InferenceError): Promise<void> {
    this.#isDraining = true;
    await this.#inFlight.none();
    this.stop(error);
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#call.end();
    this.#exchange.end(undefined);
  }

  /** The client has left, or its deadline has passed. */
  #leave(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#client.leave();
    this.#exchange.left();
  }

  /** Begins to answer a request. Resolves when the next message may be read. */
  async #take(message: Buffer): Promise<void> {
    const part = this.#exchange.part();
    let request: ReadCall;
    let parts: AnswerInParts | undefined;
    try {
      await this.#parts.turn(this.#exchange);
      await this.#exchange.refresh();
      request = readCall(message, part, this.#parts, this.#client);
      parts = partsOf(request.call, request.read);
    } catch (error) {
      return this.#refuse(error, part);
    } finally {
      this.#exchange.arrivals?.taken();
    }
    const { call, read } = request;
    const { model } = call;
    const { sequence } = read.valid;
    const name = sequence && `${model.name} ${sequence.id.kind} ${sequence.id.value}`;
    const ended = this.#inFlight.begin(name);
    const answered = parts === undefined ? this.#infer(request, part) : this.#speak(parts, request, part);
    void answered.finally(ended);
    await this.#inFlight.turnOf(name);
  }

  /** Sends the refusal of a request that could not be read, or does not fit its model. */
  #refuse(refusal: unknown, part: Exchange): void {
    const fault = this.#fault(refusal, { id: part.messageId });
    part.end(codeOf(refusal));
    const ended = this.#inFlight.begin(undefined);
    const sent = this.#inOrder(this.#isOrdered ? ALL : undefined, async () => fault);
    void sent.finally(ended);
  }

  async #infer(request: ReadCall, part: Exchange): Promise<void> {
    await this.#inOrder(this.#lineOf(request.call.model), () => this.#tensors(request, part));
  }

  /** @returns the message; undefined if the client has all, or if the stream has failed */
  async #tensors({ call, read, terms }: ReadCall, part: Exchange): Promise<Buffer | undefined> {
    const index = call.idempotencyKey === undefined ? undefined : 0;
    const named = { id: read.id, accepted: { model: call.model.name, version: call.version ?? "" }, index };
    try {
      if ((terms.resumeAfter ?? 0) > 0) throw fixedError("ahead_of_log", "usual");
      const outcome = await call.inference.infer(tensorRequest(call, read));
      if (outcome.kind === "error") {
        const error = refusalOf(outcome);
        part.end(error.code);
        // Without an id the request was refused before any model saw it.
        if (outcome.id === undefined) return this.#fault(error, { id: read.id });
        return this.#failure(error, named);
      }
      part.end(undefined);
      const answer = await tensorAnswer(call, read, outcome);
      if (terms.resumeAfter === undefined) return writePart(marked(answer, true, index));
      return terms.emptyFinal ? writePart(marked({ ...answer, tensors: [] }, true, index)) : undefined;
    } catch (error) {
      part.end(codeOf(error));
      return this.#fault(error, { id: read.id });
    }
  }

  /** Sends each part of an answer as a message. */
  async #speak(
    { partOf, empty, ...asked }: AnswerInParts,
    { call, read, terms }: ReadCall,
    part: Exchange,
  ): Promise<void> {
    const { model } = call;
    const isKeyed = call.idempotencyKey !== undefined;
    const accepted = { model: model.name, version: call.version ?? "" };
    const answer = { model: model.name, version: model.version, id: read.id };
    let index = terms.resumeAfter;
    let isAccepted = false;
    let isEmpty = index === undefined;
    const { before, leave } = this.#place(this.#lineOf(model));
    try {
      const request = wholeUnderKey(asked.request);
      const stream = await call.inference.generate(request);
      isAccepted = true;
      cancelOnDisconnect(stream, request, this.#client.signal);
      await before;
      for await (const records of stream.read(index === undefined ? 0 : index + 1, this.#client.signal)) {
        for (const raw of records) {
          const record = readRecord(raw);
          index = raw.index;
          const isFinal = record.final === true;
          const given = (await partOf(record)) ?? (isFinal && isEmpty ? empty : undefined);
          if (given !== undefined || (isFinal && terms.emptyFinal)) {
            isEmpty = false;
            // A message that only says that the answer is complete has no outputs.
            const tensors = given ?? [];
            await this.#sender.send(writePart(marked({ ...answer, tensors }, isFinal, isKeyed ? index : undefined)));
          }
          if (isFinal) return part.end(undefined);
        }
      }
      part.end("cancelled", false);
    } catch (error) {
      part.end(codeOf(error));
      const named = { id: read.id, ...(isAccepted && { accepted }), index: isKeyed ? index : undefined };
      const message = isAccepted ? this.#failure(error, named) : this.#fault(error, named);
      if (message !== undefined) await this.#sender.send(message);
    } finally {
      leave();
    }
  }

  /** @returns the message about a failure; undefined if the failure ends the stream */
  #failure(error: unknown, named: Named): Buffer | undefined {
    if (!this.#isStrict) return this.#fault(error, named);
    this.fail(error);
    return undefined;
  }

  #fault(error: unknown, named: Named): Buffer {
    const told = toldOf(error);
    return writeFault({ message: textOf(told), code: told.code, ...named });
  }

  /** Sends a message when those of all earlier requests have been sent. */
  async #inOrder(line: string | undefined, answer: () => Promise<Buffer | undefined>): Promise<void> {
    const message = answer();
    const { before, leave } = this.#place(line);
    try {
      const bytes = await message;
      const released = this.#sender.hold(bytes);
      await before;
      released();
      if (bytes !== undefined) await this.#sender.send(bytes);
    } finally {
      leave();
    }
  }

  /**
   * The line in which the answers of a model's requests leave; undefined if each leaves when it is
   * there. Triton promises an order of decoupled answers only if `preserve_ordering` asks for it.
   */
  #lineOf(model: ServedModel): string | undefined {
    if (this.#isOrdered && !hasStreams(model)) return ALL;
    return keepsOrder(model) ? model.name : undefined;
  }

  /** Takes the next place in a line. */
  #place(line: string | undefined): { readonly before: Promise<void> | undefined; readonly leave: () => void } {
    if (line === undefined) return { before: undefined, leave: () => undefined };
    const before = this.#lines.get(line);
    let leave = () => {};
    const place = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#lines.set(line, before === undefined ? place : before.then(() => place));
    return { before, leave };
  }
}

/** @param index of the answer; undefined without a key */
function marked(answer: InferAnswer, isFinal: boolean, index: number | undefined): InferAnswer {
  const parameters = {
    ...answer.parameters,
    triton_final_response: isFinal,
    ...(index !== undefined && { response_index: index }),
  };
  return { ...answer, parameters };
}
