/**
 * What JetStream has of a request. Every message names its record by its id, as
 * `<request>.<index>`, so that JetStream drops one that it has, and an index is found without
 * reading what a record says. On the subject of a label it is `<request>.<index>.<label>`, since
 * JetStream knows ids apart from subjects.
 */
import { ID_HEADER, isNotFound, type Bus, type JetStreamManager, type StoredMsg } from "../nats/connect.js";
import type { RequestAddress } from "../queue/address.js";
import { labelledSubject, tokenSubject } from "../queue/keys.js";

/** The JetStream stream over the subjects of all requests. */
export const TOKEN_STREAM = "BATON_TOKENS";

/** One of the subjects on which all records of a request are published. */
export interface Feed {
  readonly subject: string;
  readonly request: string;
  /** Of the job that the request runs, as a token; undefined for the request's own subject. */
  readonly label?: string;
}

/** The request's own subject. */
export function ownFeed(address: RequestAddress): Feed {
  return { subject: tokenSubject(address), request: address.request };
}

/**
 * All subjects of a request, its own first.
 * @param labels of the job that it runs, as tokens
 */
export function feedsOf(address: RequestAddress, labels: readonly string[]): readonly Feed[] {
  const { request } = address;
  return [ownFeed(address), ...labels.map((label) => ({ subject: labelledSubject(label, address), request, label }))];
}

/** The id of the message with a record. */
export function recordId({ request, label }: Omit<Feed, "subject">, index: number): string {
  return label === undefined ? `${request}.${index}` : `${request}.${index}.${label}`;
}

/** A message that JetStream has. */
export interface Captured {
  /** Its place among the messages of all requests. */
  readonly seq: number;
  /** The index of its record; -1 for what no process of ours has published. */
  readonly index: number;
}

/**
 * The newest record of a request that JetStream has on one of its subjects.
 * @throws Error while JetStream does not answer
 */
export async function lastCaptured(bus: Bus, feed: Feed): Promise<Captured | undefined> {
  const manager = await bus.jetStream();
  return find(manager, feed, { last_by_subj: feed.subject });
}

/**
 * The index of the record that a consumer gives next which stands at a place.
 * @throws Error while JetStream does not answer
 */
export async function nextIndex(bus: Bus, feed: Feed, seq: number): Promise<number> {
  const manager = await bus.jetStream();
  const next = await find(manager, feed, { seq, next_by_subj: feed.subject });
  return next?.index ?? ((await lastCaptured(bus, feed))?.index ?? -1) + 1;
}

/**
 * Finds where a consumer is to begin so that the record at `from` is its first. What is captured of
 * a request is in order, but for single messages that were published again late; so the place is
 * halved in, and looked for before such a message where one has misled the search.
 * @returns undefined where no record at or after `from` is captured
 * @throws Error while JetStream does not answer
 */
export async function findCaptured(bus: Bus, feed: Feed, from: number): Promise<Captured | undefined> {
  const manager = await bus.jetStream();
  const next = (seq: number) => find(manager, feed, { seq, next_by_subj: feed.subject });
  const first = await next(1);
  const last = await find(manager, feed, { last_by_subj: feed.subject });
  if (first === undefined || last === undefined) return undefined;
  return firstFrom(first, last, from, next);
}

/**
 * @param next gives the first message of the request at or after a place
 * @returns the first message with an index of at least `from`
 */
export async function firstFrom(
  first: Captured,
  last: Captured,
  from: number,
  next: (seq: number) => Promise<Captured | undefined>,
): Promise<Captured | undefined> {
  if (first.index >= from) return first;
  // The record is not before `low`; `found` is the earliest message known to be at or past it.
  let [low, high] = [first.seq + 1, last.seq + 1];
  let found: Captured | undefined;
  let below: Captured | undefined;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const at = await next(middle);
    if (at === undefined || at.seq >= high) high = middle;
    else if (at.index >= from) {
      found = at;
      high = middle;
    } else {
      below = at;
      low = at.seq + 1;
    }
  }
  if (found?.index === from || below === undefined) return found;
  // The one below may be a late double, with the record before it.
  return (await firstFrom(first, { ...below, seq: below.seq - 1 }, from, next)) ?? found;
}

async function find(
  manager: JetStreamManager,
  feed: Feed,
  query: { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string },
): Promise<Captured | undefined> {
  try {
    return capturedOf(feed, await manager.streams.getMessage(TOKEN_STREAM, query));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function capturedOf({ request, label }: Feed, { seq, header }: StoredMsg): Captured {
  const [of, index = "", by, more] = header.get(ID_HEADER).split(".");
  const isOurs = of === request && by === label && more === undefined && /^\d{1,9}$/.test(index);
  return { seq, index: isOurs ? Number(index) : -1 };
}
