/** Receivers of webhooks, real ones over HTTP, and a client for a gateway's webhooks. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Webhook } from "standardwebhooks";
import type { Redis } from "ioredis";
import { eventsKey } from "#shared/queue/keys.js";
import { BUCKETS } from "../fleet/profile.js";

export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly id: string;
}

/** Answers a request itself, or returns the status to answer with. */
export type Behaviour = (received: Received, response: ServerResponse, socket: Socket) => number | undefined;

/** A server that keeps all requests, and answers each path as a test says. */
export class Receiver {
  readonly received: Received[] = [];
  readonly #server: Server;
  readonly #behaviours = new Map<string, Behaviour>();
  #port = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(host = "127.0.0.1"): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, host, resolve));
    receiver.#port = (receiver.#server.address() as AddressInfo).port;
    return receiver;
  }

  get port(): number {
    return this.#port;
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  /** Sets the behaviour of a path. A path without a behaviour answers 204. */
  on(path: string, behaviour: Behaviour): string {
    this.#behaviours.set(path, behaviour);
    return this.url(path);
  }

  at(path: string): Received[] {
    return this.received.filter((one) => one.path === path);
  }

  async dispose(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    response.on("error", () => undefined);
    try {
      for await (const piece of request) pieces.push(piece as Buffer);
    } catch {
      return; // the sender has died
    }
    const headers = request.headers as Record<string, string>;
    const path = request.url ?? "";
    const one = { path, headers, body: Buffer.concat(pieces).toString("utf8"), id: headers["webhook-id"] ?? "" };
    this.received.push(one);
    const status = (this.#behaviours.get(path) ?? (() => 204))(one, response, request.socket);
    if (status !== undefined) response.writeHead(status).end();
  }
}

/**
 * The content of a delivery, from the library of Standard Webhooks.
 * @throws if the signature does not hold
 */
export function verified({ headers, body }: Received, secret: string): { type: string; data: Record<string, unknown> } {
  return new Webhook(secret).verify(body, { ...headers }) as { type: string; data: Record<string, unknown> };
}

export interface WebhookView {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly enabled: boolean;
  readonly disabled_reason?: string;
  readonly secret?: string;
}

export interface DeliveryView {
  readonly id: string;
  readonly event: string;
  readonly job: string | null;
  /** Null for a job's own webhook. */
  readonly webhook: string | null;
  readonly state: string;
  readonly attempts: readonly { readonly at: string; readonly status: number | null; readonly error: string | null }[];
  readonly next_attempt_at: string | null;
}

/** A client of a gateway, for one tenant. */
export class WebhookClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.#url = url;
    this.#headers = headers;
  }

  async ask<Body>(method: string, path: string, body?: object): Promise<{ status: number; body: Body; text: string }> {
    const init = { method, headers: { ...this.#headers }, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = await fetch(`${this.#url}/v2${path}`, init);
    const text = await answer.text();
    return { status: answer.status, body: (text === "" ? undefined : JSON.parse(text)) as Body, text };
  }

  /** Registers a webhook for expired sequences. */
  async register(url: string): Promise<WebhookView & { readonly secret: string }> {
    const { status, body, text } = await this.ask<WebhookView & { readonly secret: string }>("POST", "/webhooks", {
      url,
      events: ["sequence.expired"],
    });
    if (status !== 201) throw new Error(`${status} ${text}`);
    return body;
  }

  async deliveries(query = ""): Promise<readonly DeliveryView[]> {
    const { body } = await this.ask<{ data: readonly DeliveryView[] }>("GET", `/deliveries${query}`);
    return body.data;
  }

  async show(id: string): Promise<WebhookView> {
    return (await this.ask<WebhookView>("GET", `/webhooks/${id}`)).body;
  }
}

let sequence = 0;

/**
 * Adds events of expired sequences, as the scripts do.
 * @returns the sequences' ids
 */
export async function noteExpiries(redis: Pick<Redis, "xadd">, tenant: string, count = 1): Promise<number[]> {
  const ids = Array.from({ length: count }, () => ++sequence);
  for (const id of ids) {
    const facts = { model: "chain", version: "1", sequence: `u${id}`, steps: 1, last: "1790000000000" };
    const fields = ["t", tenant, "e", "sequence.expired", "d", JSON.stringify(facts)];
    await redis.xadd(eventsKey(id % BUCKETS), "*", ...fields);
  }
  return ids;
}
