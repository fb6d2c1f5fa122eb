/**
 * An application that reads a stream straight from NATS with a plain client, by the gateway's
 * AsyncAPI document. The application validates each message against the schema there. If the index
 * shows a gap, it reads the missing records as a durable stream.
 */
import { Ajv } from "ajv";
import { connect } from "nats";

export interface NatsReading {
  /** The records, each in its original text. */
  readonly records: readonly string[];
  /** How many records came as messages. */
  readonly heard: number;
  /** How often a gap, an empty message or silence made the application read the log. */
  readonly looks: number;
}

export interface NatsReadingPlan {
  readonly natsUrl: string;
  readonly gateway: string;
  readonly id: string;
  /** If true, the message with this index is lost before the application sees it. */
  readonly loses?: (index: number) => boolean;
}

interface Description {
  readonly channels: { readonly records: { readonly address: string } };
  readonly components: { readonly messages: { readonly record: { readonly payload: { readonly schema: object } } } };
}

/** The document says to look into the log after a second without a message. */
const SILENCE_MS = 1_000;

/**
 * Resolves as soon as the subscription stands. `whole` resolves when the application has read the
 * stream to its end.
 */
export async function readFromNats(plan: NatsReadingPlan): Promise<{ readonly whole: Promise<NatsReading> }> {
  const { natsUrl, gateway, id, loses = () => false } = plan;
  const description = (await (await fetch(`${gateway}/v2/asyncapi.json`)).json()) as Description;
  const { subject } = (await (await fetch(`${gateway}/v2/requests/${id}`)).json()) as { subject: string };
  const form = description.channels.records.address.replace(/\{\w+\}/g, "[^.]+").replaceAll(/\.(?!\])/g, "\\.");
  if (!new RegExp(`^${form}$`).test(subject)) throw new Error(`'${subject}' is not of the documented form`);
  const isRecord = new Ajv({ strict: false }).compile(description.components.messages.record.payload.schema);

  const records: string[] = [];
  const reading = { records, heard: 0, looks: 0 };

  /** Returns whether the stream is over, like `take` below. */
  const look = async (): Promise<boolean> => {
    reading.looks++;
    const offset = String(records.length).padStart(10, "0");
    const answer = await fetch(`${gateway}/v2/requests/${id}/stream?offset=${offset}`);
    if (!answer.ok) throw new Error(`the log was answered with ${answer.status}`);
    // JSON prints numbers as in the original, so the texts are the same again.
    for (const record of (await answer.json()) as unknown[]) records.push(JSON.stringify(record));
    return answer.headers.get("stream-closed") === "true";
  };

  const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const messages = connection.subscribe(subject);
  await connection.flush();

  const take = async (text: string): Promise<boolean> => {
    if (text === "") return look();
    const record = JSON.parse(text) as { index: number; final?: true };
    if (!isRecord(record)) throw new Error(`no record by the schema: ${text}`);
    if (loses(record.index) || record.index < records.length) return false;
    if (record.index > records.length) return look();
    records.push(text);
    reading.heard++;
    return record.final === true;
  };

  const read = async (): Promise<NatsReading> => {
    const next = messages[Symbol.asyncIterator]();
    try {
      let coming = next.next();
      for (let isOver = await look(); !isOver;) {
        const silence = new AbortController();
        const message = await Promise.race([coming, quietly(SILENCE_MS, silence.signal)]);
        silence.abort();
        if (message?.done === true) throw new Error("the subscription has ended");
        if (message !== undefined) coming = next.next();
        isOver = message === undefined ? await look() : await take(message.value.string());
      }
      return reading;
    } finally {
      await connection.close();
    }
  };
  return { whole: read() };
}

function quietly(ms: number, signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}
