/**
 * The client of an operation, as every service knows the client. A door makes the caller once for
 * each request, and no later code decides again.
 */
export interface Caller {
  /** The owner of everything that the caller reads or makes; empty if the caller names none. */
  readonly tenant: string;
}
