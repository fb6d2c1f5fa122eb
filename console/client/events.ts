/** Reads server-sent events by `fetch`, because an EventSource cannot send the key. */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { ask, isAway } from "./ask.js";
import { Away } from "./refusal.js";

export interface EventReading {
  readonly signal: AbortSignal;
  /** The id of the last event that the page has; undefined for a new reader. */
  readonly after?: string | undefined;
  /** Called when the gateway has begun to answer. */
  readonly onOpen: () => void;
  readonly onEvent: (event: EventSourceMessage) => void;
}

/**
 * Reads until the gateway ends the events.
 * @throws Refusal or Away
 */
export async function readEvents(path: string, { signal, after, onOpen, onEvent }: EventReading): Promise<void> {
  const response = await ask(path, { signal, headers: after === undefined ? {} : { "last-event-id": after } });
  onOpen();
  const parser = createParser({ onEvent });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  try {
    for (let part = await reader.read(); !part.done && !signal.aborted; part = await reader.read()) {
      parser.feed(part.value);
    }
  } catch (error) {
    if (!signal.aborted) isAway.value = true;
    throw new Away("the connection broke", { cause: error });
  }
}
