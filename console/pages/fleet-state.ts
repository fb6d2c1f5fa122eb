/**
 * The fleet, as the gateway last described it, and its events. A key that shows the whole fleet
 * follows the events of the gateway, which bring each new state of the fleet. If the gateway
 * refuses them, the page polls.
 */
import { effect, signal } from "@preact/signals";
import type { Fleet, OwnFleet } from "../../gateway/answers.js";
import { read } from "../client/ask.js";
import { readEvents } from "../client/events.js";
import { parseJson } from "../client/json.js";
import { usePolledBy, type Polled } from "../client/poll.js";
import { Refusal } from "../client/refusal.js";
import { eventOf, type ShownEvent } from "./fleet-event.js";

export type AnyFleet = Fleet | OwnFleet;

/** Events to keep; the oldest go first. */
const MOST_EVENTS = 300;
/**
 * Time without a new state, in ms, after which the page reads the fleet again. The gateway sends
 * the loads of an idle fleet every 6 s, so silence means a dead connection, or a gateway that
 * cannot ask Redis.
 */
const MOST_SILENCE_MS = 20_000;
/** Pause before the page asks again for events that the gateway has refused, in ms. */
const REFUSED_MS = 60_000;

/** The newest first. */
export const events = signal<readonly ShownEvent[]>([]);

/** Whether the gateway has refused the events, as an older gateway does. */
export const isRefused = signal(false);

/** Whether the key shows the whole fleet, and not only the models and the load of its owner. */
export function isWhole(fleet: AnyFleet): fleet is Fleet {
  return "workers" in fleet;
}

let watched: Polled<AnyFleet> | undefined;
let lastId: string | undefined;
/** In ms of `performance.now`. */
let refusedAt = -Infinity;

export function useFleet(): Polled<AnyFleet> {
  const polled = usePolledBy<AnyFleet>("/v2/fleet", (signal) => read("/v2/fleet", { signal }), undefined, follow);
  if (watched !== polled) {
    watched = polled;
    effect(() => {
      if (polled.answer.value === undefined) forget();
    });
  }
  return polled;
}

/** Another key may not see the events. */
function forget(): void {
  events.value = [];
  isRefused.value = false;
  lastId = undefined;
  refusedAt = -Infinity;
}

async function follow(first: AnyFleet, take: (fleet: AnyFleet) => void, signal: AbortSignal): Promise<void> {
  if (!isWhole(first) || performance.now() - refusedAt < REFUSED_MS) return;
  const silence = new AbortController();
  const listen = () => setTimeout(() => silence.abort(), MOST_SILENCE_MS);
  let timer = listen();
  try {
    await readEvents("/v2/fleet/events", {
      signal: AbortSignal.any([signal, silence.signal]),
      after: lastId,
      onOpen: () => (isRefused.value = false),
      onEvent({ id, event, data }) {
        lastId = id ?? lastId;
        if (event !== "snapshot") {
          events.value = [eventOf(id, event, data), ...events.peek()].slice(0, MOST_EVENTS);
          return;
        }
        clearTimeout(timer);
        timer = listen();
        take(parseJson(data) as Fleet);
      },
    });
  } catch (error) {
    if (silence.signal.aborted) return;
    if (!(error instanceof Refusal)) throw error;
    isRefused.value = true;
    refusedAt = performance.now();
  } finally {
    clearTimeout(timer);
  }
}
