/**
 * Reads the records of a stream to the end, over as many connections as necessary. Every event
 * carries the index of its record. A new connection continues after the last index, at any gateway.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { TokenRecord } from "#shared/contract/generation.js";
import { Refused, refusalInStream, Unreached, unreached } from "./errors.js";
import type { Gateway } from "./gateway.js";
import { mayRepeat, pauseMs, persistently } from "./persist.js";

/**
 * A gateway sends something every 15 s. After a longer silence than this, the client takes the
 * connection for dead.
 */
const SILENCE_MS = 45_000;
/** Connections in a row without a record before the client gives up, after about half a minute. */
const MOST_FRUITLESS = 20;

/**
 * Yields each record once, in order; the last record is final.
 * @param id of the request
 * @throws Failure if the client cannot continue the stream
 */
export async function* readRecords(gateway: Gateway, id: string): AsyncGenerator<TokenRecord, void> {
  let next = 0;
  for (let fruitless = 0; ; fruitless++) {
    const from = next;
    // A gateway that stops ends its streams early, and the clients connect to another gateway.
    let why: Unreached | Refused = new Unreached(`${gateway.url} ended the stream before its end`, true);
    try {
      for await (const { data } of await openEvents(gateway, id, next)) {
        const record = JSON.parse(data) as TokenRecord;
        next = record.index + 1;
        yield record;
        if (record.final === true) return;
      }
    } catch (error) {
      if (!mayRepeat(error, true)) throw error;
      why = error;
    }
    if (next > from) fruitless = 0;
    if (fruitless === MOST_FRUITLESS) throw why;
    gateway.note(`${why.message}; reading on ${next === 0 ? "from the beginning" : `after record ${next - 1}`}`);
    await pause(pauseMs(fruitless), undefined, { signal: gateway.signal });
  }
}

/** @throws Failure if no gateway opens the stream */
async function openEvents(gateway: Gateway, id: string, next: number): Promise<AsyncGenerator<EventSourceMessage>> {
  const headers = { accept: "text/event-stream", ...(next > 0 && { "last-event-id": String(next - 1) }) };
  const silence = new AbortController();
  const signal = AbortSignal.any([gateway.signal, silence.signal]);
  const response = await persistently(
    () => gateway.open(`/v2/requests/${encodeURIComponent(id)}/events`, { headers }, signal),
    {
      signal: gateway.signal,
      known: true, // because a gateway has admitted the request
      onBreak: (error) => gateway.note(`${error.message}; asking again`),
    },
  );
  return events(gateway, response, silence);
}

async function* events(
  gateway: Gateway,
  { body }: Response,
  silence: AbortController,
): AsyncGenerator<EventSourceMessage, void> {
  if (body === null) return;
  const limit = setTimeout(() => silence.abort(new Error(`nothing came for ${SILENCE_MS / 1000} s`)), SILENCE_MS);
  const come: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void come.push(event) });
  const decoder = new TextDecoder();
  try {
    for await (const bytes of body) {
      limit.refresh();
      parser.feed(decoder.decode(bytes, { stream: true }));
      for (const event of come.splice(0)) {
        if (event.event === "error") throw refusalInStream(event.data);
        yield event;
      }
    }
  } catch (error) {
    if (gateway.signal.aborted || error instanceof Refused) throw error;
    throw unreached(error, gateway.url);
  } finally {
    clearTimeout(limit);
  }
}
