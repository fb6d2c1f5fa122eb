/**
 * A gateway in this process with real brokers behind it, for tests of the paths below
 * `/v2/requests/<id>`: the test admits the requests, and answers them like a worker.
 */
import { randomUUID } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect } from "vitest";
import { AdmissionBatcher } from "../../../gateway/admission/batcher.js";
import { submitLater } from "../../../gateway/admission/submit.js";
import { directoryOf } from "../../../gateway/fleet/models.js";
import type { Guard } from "../../../gateway/http/guard.js";
import { PendingRequests } from "../../../gateway/outcomes/pending.js";
import { OutcomeSweeper } from "../../../gateway/outcomes/sweep.js";
import { RequestService } from "../../../gateway/service/requests.js";
import { WebSocketEndpoint } from "../../../gateway/api/streams/websocket.js";
import type { RunningServer } from "../../../gateway/server.js";
import type { OpenStream } from "../../../gateway/stream/open-stream.js";
import { asked, talker } from "../../fixtures/generation.js";
import { servedModel } from "../../fixtures/served-models.js";
import { TestGateway } from "../gateway/test-gateway.js";
import { silentLog } from "../silent.js";
import { BROKERS_ALONE, StreamLab } from "./lab.js";
import { PLACE, type RelayGateway } from "./relay.js";
import { foreignRequest, Writer } from "./writer.js";

/** Of a deployment whose requests no test lists. */
export const ofNoFleet = { buckets: 1, models: { directory: directoryOf([]) } };

export interface LabGateway {
  readonly url: string;
  readonly port: number;
  readonly server: RunningServer;
  readonly webSockets: WebSocketEndpoint;
}

/** A request that the lab has just admitted. */
export interface Begun {
  readonly id: string;
  readonly writer: Writer;
  /** The request's path below any gateway. */
  readonly path: string;
}

/** An answer that comes bit by bit. */
export interface Listening {
  readonly head: IncomingMessage;
  /** The text so far. */
  readonly text: () => string;
  /** The whole text. */
  readonly ended: Promise<string>;
  leave(): void;
}

export class RequestLab {
  readonly streams: StreamLab;
  readonly relayed: RelayGateway;
  readonly #guard: Guard | undefined;
  readonly #gateways: LabGateway[] = [];
  readonly #logged: unknown[] = [];

  private constructor(streams: StreamLab, relayed: RelayGateway, guard: Guard | undefined) {
    this.streams = streams;
    this.relayed = relayed;
    this.#guard = guard;
  }

  static async open(guard?: Guard): Promise<RequestLab> {
    const streams = await StreamLab.open(BROKERS_ALONE);
    const lab = new RequestLab(streams, await streams.addRelay(), guard);
    await lab.start();
    return lab;
  }

  /** Expects that no gateway has logged an error. */
  async close(): Promise<void> {
    for (const { server } of this.#gateways) await server.close(0);
    await this.streams.close();
    expect(this.#logged).toEqual([]);
  }

  /** The first gateway. */
  get gateway(): LabGateway {
    const [first] = this.#gateways;
    if (first === undefined) throw new Error("no gateway was started");
    return first;
  }

  /** Starts another gateway over the same relay. */
  async start(pingMs = 60_000): Promise<LabGateway> {
    const { redis, bus, relay, generate } = this.relayed;
    const requests = new RequestService({ redis, bus, relay, ...ofNoFleet, outcomeTtlMs: 10_000 });
    const log = (fields: Readonly<Record<string, unknown>>) => void this.#logged.push(fields);
    const limits = { queue: 1_000, waitingPerSequence: 64, liveSequences: 1_000 };
    const batcher = new AdmissionBatcher(redis, { gateway: `gw-${randomUUID()}`, limits });
    const models = { pinned: () => undefined, heir: () => undefined };
    const queue = { redis, batcher, models, ...PLACE, idempotencyTtlMs: 60_000 };
    const pending = new PendingRequests({ redis, bus, gateway: "gw", secret: PLACE.secret, log: silentLog });
    const sweeper = new OutcomeSweeper(redis);
    const ttls = { outcomeTtlMs: 10_000, resultTtlMs: 50_000 };
    const submission = { queue, pending, sweeper, ...ttls, log: silentLog };
    const webSockets = new WebSocketEndpoint({ requests, log, pingMs });
    const { server, url, port } = await TestGateway.start({
      models: [talker, servedModel("adder")],
      inference: {
        infer: () => Promise.reject(new Error("not asked for")),
        inferLater: (request) => submitLater(submission, request),
        generate,
      },
      requests,
      log,
      ...(this.#guard !== undefined && { guard: this.#guard }),
      server: { webSockets, log: () => undefined },
    });
    const gateway = { url, port, server, webSockets };
    this.#gateways.push(gateway);
    return gateway;
  }

  /** Admits a stream at the relay, which follows the stream. */
  async begin(): Promise<Begun & { readonly stream: OpenStream }> {
    const stream = await this.relayed.generate(asked());
    return { stream, ...this.#begun(stream.id, new Writer(this.streams, stream.id)) };
  }

  /** Admits a request as another gateway would, so no relay follows the request here yet. */
  async foreign(model?: string): Promise<Begun> {
    const { id, writer } = await foreignRequest(this.streams, model);
    return this.#begun(id, writer);
  }

  #begun(id: string, writer: Writer): Begun {
    return { id, writer, path: `/v2/requests/${id}` };
  }
}

/** Opens a lab before the tests of a file, and closes the lab after them. */
export function useRequestLab(guard?: Guard): () => RequestLab {
  let lab: RequestLab | undefined;
  beforeAll(async () => {
    lab = await RequestLab.open(guard);
  });
  afterAll(() => lab?.close());
  return () => {
    if (lab === undefined) throw new Error("the tests have not begun");
    return lab;
  };
}

/** Asks for an answer that comes bit by bit. */
export function listen(url: string, headers: Record<string, string> = {}): Promise<Listening> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { headers, agent: false }, (head) => {
      let text = "";
      head.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      const ended = new Promise<string>((done, cut) => head.on("end", () => done(text)).on("error", cut));
      ended.catch(() => undefined); // the test that awaits it gets the error
      resolve({ head, text: () => text, ended, leave: () => sent.destroy() });
    });
    sent.on("error", reject);
    sent.end();
  });
}
