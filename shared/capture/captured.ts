/**
 * What JetStream has of a request. Every message names its record by its id, as
 * `<request>.<index>`, so that JetStream drops one that it has, and an index is found without
 * reading what a record says.
 */
import { ID_HEADER, isNotFound, type Bus, type JetStreamManager, type StoredMsg } from "../nats/connect.js";
import type { RequestAddress } from "../queue/address.js";
import { tokenSubject } from "../queue/keys.js";

/** The JetStream stream over the subjects of all requests. */
export const TOKEN_STREAM = "BATON_TOKENS";

/** The id of the message with a record. */
export function recordId({ request }: Pick<RequestAddress, "request">, index: number): string {
  return `${request}.${index}`;
}

/** A message that JetStream has. */
export interface Captured {
  /** Its place among the messages of all requests. */
  readonly seq: number;
  /** The index of its record; -1 for what no process of ours has published. */
  readonly index: number;
}

/**
 * The newest record of a request that JetStream has.
 * @throws Error while JetStream does not answer
 */
export async function lastCaptured(bus: Bus, address: RequestAddress): Promise<Captured | undefined> {
  const manager = await bus.jetStream();
  return find(manager, address, { last_by_subj: tokenSubject(address) });
}

/**
 * The index of the record that a consumer gives next which stands at a place.
 * @throws Error while JetStream does not answer
 */
export async function nextIndex(bus: Bus, address: RequestAddress, seq: number): Promise<number> {
  const manager = await bus.jetStream();
  const next = await find(manager, address, { seq, next_by_subj: tokenSubject(address) });
  return next?.index ?? ((await lastCaptured(bus, address))?.index ?? -1) + 1;
}

/**
 * Finds where a consumer is to begin so that the record at `from` is its first. What is captured of
 * a request is in order, but for single messages that were published again late; so the place is
 * halved in, and looked for before such a message where one has misled the search.
 * @returns undefined where no record at or after `from` is captured
 * @throws Error while JetStream does not answer
 */
export async function findCaptured(bus: Bus, address: RequestAddress, from: number): Promise<Captured | undefined> {
  const manager = await bus.jetStream();
  const subject = tokenSubject(address);
  const next = (seq: number) => find(manager, address, { seq, next_by_subj: subject });
  const first = await next(1);
  const last = await find(manager, address, { last_by_subj: subject });
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
  address: RequestAddress,
  query: { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string },
): Promise<Captured | undefined> {
  try {
    return capturedOf(address, await manager.streams.getMessage(TOKEN_STREAM, query));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function capturedOf({ request }: RequestAddress, { seq, header }: StoredMsg): Captured {
  const [of, index = "", more] = header.get(ID_HEADER).split(".");
  const isOurs = of === request && more === undefined && /^\d{1,9}$/.test(index);
  return { seq, index: isOurs ? Number(index) : -1 };
}
