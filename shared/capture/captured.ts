/**
 * A request's records in JetStream. The id of a message names the record as `<request>.<index>`. So
 * JetStream drops duplicates, and a reader finds an index without the record's text. On the subject
 * of a label the id is `<request>.<index>.<label>`, because JetStream compares ids across subjects.
 */
import { isNotFound, type JetStreamManager, type StoredMsg } from "../nats/client.js";
import { ID_HEADER, type Bus } from "../nats/connect.js";
import type { RequestAddress } from "../queue/address.js";
import { labelledSubject, tokenSubject } from "../queue/keys.js";

/** The JetStream stream over the subjects of all requests. */
export const TOKEN_STREAM = "BATON_TOKENS";

/** A subject with all records of a request. */
export interface Feed {
  readonly subject: string;
  readonly request: string;
  /** A label of the request's job, as a token; undefined for the request's own subject. */
  readonly label?: string;
}

/** The request's own subject. */
export function ownFeed(address: RequestAddress): Feed {
  return { subject: tokenSubject(address), request: address.request };
}

/**
 * All subjects of a request, the request's own first.
 * @param labels the job's labels as tokens
 */
export function feedsOf(address: RequestAddress, labels: readonly string[]): readonly Feed[] {
  const { request } = address;
  return [ownFeed(address), ...labels.map((label) => ({ subject: labelledSubject(label, address), request, label }))];
}

/** The id of a record's message. */
export function recordId({ request, label }: Omit<Feed, "subject">, index: number): string {
  return label === undefined ? `${request}.${index}` : `${request}.${index}.${label}`;
}

/** A message in JetStream. */
export interface Captured {
  /** The message's number in the JetStream stream, which holds all requests. */
  readonly seq: number;
  /** The record's index; -1 for a message that no process of Baton has published. */
  readonly index: number;
}

/**
 * A request's newest record in JetStream, on one subject.
 * @throws Error while JetStream does not answer
 */
export async function lastCaptured(bus: Bus, feed: Feed): Promise<Captured | undefined> {
  const manager = await bus.jetStream();
  return find(manager, feed, { last_by_subj: feed.subject });
}

/**
 * The index of the next record that a consumer at the given place receives.
 * @throws Error while JetStream does not answer
 */
export async function nextIndex(bus: Bus, feed: Feed, seq: number): Promise<number> {
  const manager = await bus.jetStream();
  const next = await find(manager, feed, { seq, next_by_subj: feed.subject });
  return next?.index ?? ((await lastCaptured(bus, feed))?.index ?? -1) + 1;
}

/**
 * Finds the place from which a consumer receives the record `from` first. A request's messages are
 * in order, except for single messages that were published again late. So a binary search finds the
 * place. If a late message has misled the search, a second search covers the messages before it.
 * @returns undefined if JetStream has no record at or after `from`
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
 * @param next gives the request's first message at or after a place
 * @returns the first message with an index of at least `from`
 */
export async function firstFrom(
  first: Captured,
  last: Captured,
  from: number,
  next: (seq: number) => Promise<Captured | undefined>,
): Promise<Captured | undefined> {
  if (first.index >= from) return first;
  // The record is at `low` or later. `found` is the earliest known message at or after the record.
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
  // `below` may be a late duplicate, and then the record lies before it.
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
