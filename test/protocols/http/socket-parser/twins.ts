/**
 * Two gateways in this process, of which only the first parses plain requests on the socket. The
 * same bytes must have the same effect on both.
 */
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect } from "vitest";
import type { InferenceRequest } from "../../../../gateway/admission/inference.js";
import { TestGateway } from "../../../support/gateway/test-gateway.js";

/** The bytes of one connection, in pieces that each arrive by themselves. */
export type Conversation = readonly Buffer[];

export interface Effect {
  /** The responses that came back, without their ids and times. */
  readonly replies: readonly string[];
  /** Whether the gateway has refused bytes. */
  readonly isRefused: boolean;
  /** The requests that reached the queue, in order. */
  readonly admitted: readonly unknown[];
}

const varying = /(?<=\r\n(?:x-request-id|Date): )[^\r]*/gi;
/** How each refusal of a connection begins (`refuseConnection`), for whatever reason. */
const refusal = /^HTTP\/1\.1 4\d\d [^\r]*\r\nConnection: close\r\nContent-Type/;
/** Turns of the event loop without an event, after which nothing more comes by itself. */
const QUIET_TURNS = 12;

export class Twins {
  readonly #gateways: TestGateway[] = [];

  async start(): Promise<void> {
    for (const socketParser of [true, false]) {
      this.#gateways.push(await TestGateway.start({ server: { socketParser } }));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#gateways.map(({ server }) => server.close(0)));
  }

  /** How many requests the first gateway has parsed on the socket. */
  get plainly(): number {
    return this.#gateways[0]?.plainly ?? 0;
  }

  /** The effect on the gateway that parses plain requests on the socket. */
  onSocket(conversation: Conversation): Promise<Effect> {
    return effectOn(this.#gateway(0), conversation);
  }

  /** The effect on the gateway that leaves all to node. */
  byNode(conversation: Conversation): Promise<Effect> {
    return effectOn(this.#gateway(1), conversation);
  }

  #gateway(index: number): TestGateway {
    const gateway = this.#gateways[index];
    if (gateway === undefined) throw new Error("the gateways have not been started");
    return gateway;
  }
}

export function useTwins(): Twins {
  const twins = new Twins();
  beforeAll(() => twins.start());
  afterAll(() => twins.close());
  return twins;
}

/**
 * Expects the same effects. When bytes are refused, answers on their way may be lost, and so may
 * the refusal if an answer has begun; which of them is a matter of turns of the event loop. Bytes
 * that nobody reads may even make the kernel drop what the client has not read yet.
 * @returns whether something was lost
 */
export function expectSame(onSocket: Effect, byNode: Effect, label: string): boolean {
  expect(onSocket.isRefused, label).toBe(byNode.isRefused);
  if (isDeepStrictEqual(onSocket, byNode)) return false;
  expect(onSocket.isRefused, label).toBe(true);
  expect(onSocket.admitted, label).toEqual(byNode.admitted);
  const both = Math.min(onSocket.replies.length, byNode.replies.length);
  expect(onSocket.replies.slice(0, both), label).toEqual(byNode.replies.slice(0, both));
  return true;
}

/**
 * Sends each piece when nothing more happens, and ends the client's half of the connection behind
 * the last. By then every complete request has its answer, and a gateway refuses an incomplete one.
 */
async function effectOn(gateway: TestGateway, conversation: Conversation): Promise<Effect> {
  const pieces: Buffer[] = [];
  const admittedBefore = gateway.admitted.length;
  let quiet = 0;
  const socket = connect({ port: gateway.port, host: "127.0.0.1", noDelay: true });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("data", (piece) => {
    pieces.push(piece);
    quiet = 0;
  });
  // The gateway that refuses bytes may reset the connection, as the rest of them has no reader.
  socket.on("error", () => undefined);
  await new Promise<void>((resolve) => socket.once("connect", resolve).once("close", resolve));
  for (const piece of conversation) {
    if (!socket.writable) break;
    socket.write(piece);
    for (quiet = 0; quiet < QUIET_TURNS; quiet++) await nextTurn();
  }
  socket.end();
  await closed;
  const text = Buffer.concat(pieces).toString("latin1");
  const replies = text.split(/(?=HTTP\/1\.1 \d)/).map((reply) => reply.replaceAll(varying, "…"));
  const refusedAt = replies.findIndex((reply) => refusal.test(reply));
  const logged = gateway.logged.splice(0);
  return {
    replies: refusedAt < 0 ? replies : replies.slice(0, refusedAt),
    isRefused: logged.some(({ line }) => line.startsWith("connection refused")),
    admitted: gateway.admitted.splice(admittedBefore).map(plainOf),
  };
}

function plainOf({ model, inputs, outputs, sequence, idempotencyKey, deadlineMs, parameters }: InferenceRequest) {
  const tensors = inputs.map((input) => ({ ...input, data: input.data.toString("hex") }));
  return { model: [model.name, model.version], tensors, outputs, sequence, idempotencyKey, deadlineMs, parameters };
}
