/**
 * The content of Redis during a run, and at rest after the run, as plain data. Together with the
 * clients' history this is all the evidence that the checker gets.
 */

export interface DeadLetter {
  readonly sequence: string;
  readonly step: number;
  readonly reason: string;
  readonly runs: number;
}

/** The content of Redis at rest. */
export interface Floor {
  readonly readyEntries: number;
  readonly pendingEntries: number;
  readonly waitKeys: readonly string[];
  readonly runsKeys: readonly string[];
  /** Keys without a TTL, of kinds that should have a TTL. */
  readonly keysWithoutTtl: readonly string[];
  /** Keys of a kind that Baton does not have. */
  readonly strangeKeys: readonly string[];
  readonly dead: readonly DeadLetter[];
  /** How many outcome records exist, and which of these have no outcome. */
  readonly outcomeRecords: number;
  readonly openOutcomes: readonly string[];
  /** How many steps of each live sequence are done, by the sequence's label. */
  readonly sequences: ReadonlyMap<string, number>;
}

/** A sequence at the time of a sample, as its last commit left the sequence. */
export interface CommitSample {
  /** Milliseconds since the history began. */
  readonly at: number;
  readonly sequence: string;
  readonly done: number;
  /**
   * The worker that committed the last step, and the entry of the queue that the step came from.
   * Each value of `done` has a single worker and a single entry.
   */
  readonly worker: string;
  readonly entry: string;
}

export interface ResourceSample {
  readonly at: number;
  readonly name: string;
  /** `natsPendingBytes` is the backlog that NATS holds for one of its clients. */
  readonly what: "rssBytes" | "descriptors" | "usedMemoryBytes" | "natsPendingBytes";
  readonly value: number;
}

export type ResourceLimits = Readonly<Record<ResourceSample["what"], number>>;
