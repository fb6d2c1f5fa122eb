/**
 * Applications that read streams from NATS alone, after a single answer from a gateway: with plain
 * clients, over WebSockets, and from JetStream. By the AsyncAPI document, they drop a message below
 * the next index. A message above the next index would be a gap, so they fail.
 */
import {
  connect,
  jwtAuthenticator,
  type Authenticator,
  type ConnectionOptions,
  type JsMsg,
  type NatsConnection,
} from "nats";
import { connect as connectWebSocket } from "nats.ws";
import { WebSocket } from "ws";

/** The gateway's answer. */
export interface Subscription {
  readonly subject: string;
  readonly servers: readonly string[];
  readonly inbox_prefix: string;
  readonly expires_at: string;
  readonly credentials: { readonly jwt: string; readonly seed: string };
  readonly jetstream: { readonly stream: string; readonly consumer: string; readonly from: number } | null;
}

export interface Asked {
  readonly status: number;
  readonly body: Subscription & { readonly code?: string; readonly error?: string };
}

/** @param path `/v2/subscriptions`, or the path of a request's own subscription */
export async function askToSubscribe(
  gateway: string,
  path: string,
  body: unknown = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Asked> {
  const answer = await fetch(gateway + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Asked["body"] };
}

/** @throws Error if the gateway refuses */
export async function subscribe(gateway: string, path: string, body: unknown = {}): Promise<Subscription> {
  const { status, body: told } = await askToSubscribe(gateway, path, body);
  if (status !== 200) throw new Error(`answered with ${status}: ${JSON.stringify(told)}`);
  return told;
}

export function subscription(gateway: string, id: string, body: unknown = {}): Promise<Subscription> {
  return subscribe(gateway, `/v2/requests/${id}/subscription`, body);
}

/** @param scheme of the servers to use */
export function openNats(told: Subscription, scheme: "nats" | "ws" = "nats", options: ConnectionOptions = {}) {
  const seed = new TextEncoder().encode(told.credentials.seed);
  const authenticator: Authenticator = jwtAuthenticator(told.credentials.jwt, seed);
  const servers = told.servers.filter((url) => url.startsWith(`${scheme}:`));
  const usual = { maxReconnectAttempts: -1, reconnectTimeWait: 20, inboxPrefix: told.inbox_prefix };
  const terms = { ...usual, servers, authenticator, ...options };
  if (scheme === "nats") return connect(terms);
  // Node 20 has no WebSocket of its own, and this client expects a browser's.
  Object.assign(globalThis, { WebSocket });
  return connectWebSocket(terms);
}

/** Takes the records of a stream in order. */
class Records {
  readonly texts: string[] = [];
  readonly #first: number;
  /** Messages that had come before. */
  doubled = 0;

  constructor(first: number) {
    this.#first = first;
  }

  /** @returns whether the record was the last */
  take(text: string): boolean {
    const record = JSON.parse(text) as { index: number; final?: true };
    const next = this.#first + this.texts.length;
    if (record.index > next) throw new Error(`record ${record.index} came where ${next} was due`);
    if (record.index < next) {
      this.doubled++;
      return false;
    }
    this.texts.push(text);
    return record.final === true;
  }
}

export interface Read {
  readonly texts: readonly string[];
  readonly doubled: number;
}

/**
 * Reads a request's messages from now on with a plain subscription.
 * @param told a subscription that may cover more requests
 */
export async function listen(
  told: Subscription,
  scheme: "nats" | "ws" = "nats",
): Promise<{ of(subject: string): Promise<Read> }> {
  const connection: NatsConnection = await openNats(told, scheme);
  const messages = connection.subscribe(told.subject);
  await connection.flush();
  return {
    async of(subject) {
      const records = new Records(0);
      for await (const message of messages) {
        if (message.subject !== subject || !records.take(message.string())) continue;
        await connection.close();
        return records;
      }
      throw new Error(`the subscription has ended after ${records.texts.length} records`);
    },
  };
}

/**
 * How long a batch may take to fill up. The client drops messages that come later, and JetStream
 * sends these again only behind the following messages, so even a busy machine must be faster than
 * this.
 */
const FETCH_MS = 30_000;

/**
 * Reads from JetStream, from the consumer's first record.
 * @param most the application leaves after this many records
 * @param acknowledged how many of these records it acknowledges
 */
export async function readCaptured(told: Subscription, most = Infinity, acknowledged = most): Promise<Read> {
  const { jetstream } = told;
  if (jetstream === null) throw new Error("nothing is captured");
  const connection = await openNats(told);
  const records = new Records(jetstream.from);
  try {
    const consumer = await connection.jetstream().consumers.get(jetstream.stream, jetstream.consumer);
    for (let isOver = false; !isOver;) {
      const wanted = Math.min(100, most - records.texts.length);
      const batch = await consumer.fetch({ max_messages: wanted, expires: FETCH_MS });
      for await (const message of batch as AsyncIterable<JsMsg>) {
        isOver = records.take(message.string()) || records.texts.length >= most;
        if (records.texts.length <= acknowledged) message.ack();
        if (isOver) break;
      }
    }
    await connection.flush();
    return records;
  } finally {
    await connection.close();
  }
}

/**
 * Reads from JetStream until so many requests have ended.
 * @param told a subscription that may cover many requests
 * @returns the records of each request, by its subject
 */
export async function readCapturedOfMany(told: Subscription, ends: number): Promise<Map<string, Read>> {
  const { jetstream } = told;
  if (jetstream === null) throw new Error("nothing is captured");
  const connection = await openNats(told);
  const found = new Map<string, Records>();
  try {
    const consumer = await connection.jetstream().consumers.get(jetstream.stream, jetstream.consumer);
    for (let ended = 0; ended < ends;) {
      const batch = await consumer.fetch({ max_messages: 100, expires: 1_000 });
      for await (const message of batch as AsyncIterable<JsMsg>) {
        const records = found.get(message.subject) ?? new Records(0);
        found.set(message.subject, records);
        if (records.take(message.string())) ended++;
        message.ack();
        if (ended >= ends) break;
      }
    }
    await connection.flush();
    return found;
  } finally {
    await connection.close();
  }
}
