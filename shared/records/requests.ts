/** The records of requests. */
import { behind, digits, like, list, number, record, rest, text } from "./record.js";

/**
 * The facts of a request in its entry of a ready stream, as the entry's field `m`. A step that
 * waits behind another step of its sequence has all but the last field.
 */
export const entry = record("|", {
  /** Name of the request (`requestName`). */
  request: text(),
  /** Name of the sequence (`tenant:id`); "" for a stateless request. */
  sequence: text(),
  /** Number of the step in the facts of the sequence, from 1; 0 for a stateless request. */
  step: digits(),
  /** START 1 + END 2 + brief 4. */
  flags: like("[0-7]"),
  /** Redis ms after which no model may begin this request. */
  deadline: digits(),
  /** The gateway process that waits for the outcome. */
  gateway: text(),
  /** How long the outcome is kept, in ms. */
  ttl: digits(),
  /**
   * Number of the step as clients count; 0 for a stateless request. A 0 in front says that a
   * webhook wants to know that the request has begun. Earlier versions of Baton read the same
   * number.
   */
  number: like("%d+"),
  /**
   * The version of the checkpoint that this step continues; "" for none, "!" if the sequence has
   * failed.
   */
  from: text(),
});

/**
 * The facts of a brief request (load.lua) before its end: a field of the hash `open:…`. For the
 * step of a sequence that is not brief, the field has the first three facts, and for any other
 * request only the first.
 */
export const brief = record("|", {
  /** Bytes of the request in the queue. */
  bytes: digits(),
  /** Number of the step in the facts of the sequence; 0 for a stateless request. */
  step: digits(),
  /** Name of the sequence; "" for a stateless request. */
  sequence: text(),
  /** Redis ms of the admission. */
  at: digits(),
  /** Redis ms after which Redis forgets the request if every process has died. */
  keptUntil: digits(),
  /** The pin of the request's lane. */
  pin: text(),
  /** The gateway process that admitted the request. */
  gateway: text(),
  /** `1` for a step that has ended but still has an entry in the queue. */
  ended: like("[01]", "0"),
  /** The entry of a request without a sequence, or `@` while it is parked. */
  entry: text(),
  /** As `terms` has them. */
  terms: rest(),
});

/**
 * The facts of a generation that counts for its owners (load.lua): a field of the hash `open:…`.
 * The first three are those of a brief request.
 */
export const owned = record("|", {
  /** Bytes of the request in the queue. */
  bytes: digits(),
  /** Number of the step in the facts of the sequence; 0 for a stateless request. */
  step: digits(),
  /** Name of the sequence; "" for a stateless request. */
  sequence: text(),
  /** The names of its owners, as rates have them, with commas between. */
  owners: behind("|of:", rest()),
});

/** The record of a brief request after its end: the string `out:{b}:m:r`. */
export const outcome = record("|", {
  /** Redis ms of the end. */
  ended: digits(13),
  /** Redis ms of the admission. */
  at: digits(13),
  /** `result` or `error`. */
  kind: text(),
  /** The pin of the request's lane. */
  pin: text(),
  /** The gateway process that admitted the request. */
  gateway: text(),
  /** The body of the outcome, on the next line. */
  body: behind("\n", rest()),
});

/** How a request waits if it is parked (parking.lua); "" for the usual terms. */
export const terms = record("|", {
  /**
   * Twice the priority level; 2 if the model has no levels. The odd rank behind is for requests
   * that have waited so long that they go behind all of their level.
   */
  rank: digits(),
  /** The share of the tenant, from the admitting gateway. */
  weight: text(),
  /**
   * Redis ms after which the request goes to that odd rank; 0: never. A gateway sends the ms from
   * the admission on.
   */
  delay: digits(),
});

/** The runs alone of a suspect: a field of the hash `runs:{b}:m:p`, by entry. */
export const runs = record(" ", {
  /** How many runs have begun. */
  count: digits(),
  /** Name of the last run. */
  last: rest(),
});

/** Limits of requests set aside (set-aside.lua). */
export const asideLimits = record(" ", {
  /** How many requests stay for a model in a bucket. */
  entries: digits(),
  /** Bytes that stay of each field. */
  bytes: digits(),
  /** For how many ms requests stay. */
  age: digits(),
});

/** A step that waits behind another step of its sequence: an item of the list `wait:{b}:m:q`. */
export const waiting = list({
  /** The facts for its entry (`entry`), without the last field. */
  facts: text(),
  /** The frame of the request. */
  frame: text(),
  /** The pin of its lane. */
  pin: text(),
  /** As `terms` has them; nil for the usual terms. */
  terms: text(),
});

/** A parked request: a field of the hash `parked:{b}:m:p`, by the name of the request. */
export const parked = list({
  /** The facts for its entry (`entry`). */
  facts: text(),
  /** The frame of the request. */
  frame: text(),
  /** As `terms` has them. */
  terms: text(),
});

/** A request that has not ended (list-open.lua). */
export const openRequest = list({
  /** The outcome's key without `out:`. */
  name: text(),
  /** `queued`, or `running` once a worker has it. */
  state: text(),
  /** Redis ms of the admission; "" if unknown. */
  at: text(),
  /** As `terms` has them. */
  terms: text(),
  /** Name of the sequence; "" for a stateless request. */
  sequence: text(),
  /** Number of the step as clients count; "" for a stateless request. */
  step: text(),
  /** The worker that has it; "" if none has. */
  worker: text(),
  /** How often a worker has taken it. */
  deliveries: number(),
  /** Records in its log. */
  records: number(),
});
