/** The records of webhooks. */
import { digits, record, words } from "./record.js";

/** The events that the webhooks of a tenant want: a field of the hash `wanted:{b}`. */
export const wanted = record("|", {
  /** The highest revision stays, because calls may come late and in any order. */
  revision: digits(),
  /** Types of events. */
  events: words(),
});
