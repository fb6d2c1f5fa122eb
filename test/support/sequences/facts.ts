/**
 * What Redis holds when nothing moves any more, and what it held on the way. With the history of
 * the clients this is all the evidence that the checker takes, as plain data.
 */

export interface DeadLetter {
  readonly sequence: string;
  readonly step: number;
  readonly reason: string;
  readonly runs: number;
}

/** What Redis holds when nothing moves any more. */
export interface Floor {
  readonly readyEntries: number;
  readonly pendingEntries: number;
  readonly waitKeys: readonly string[];
  readonly runsKeys: readonly string[];
  /** Keys without a TTL, of kinds that should have one. */
  readonly keysWithoutTtl: readonly string[];
  /** Keys of a kind that Baton does not have. */
  readonly strangeKeys: readonly string[];
  readonly dead: readonly DeadLetter[];
  /** How many outcome records there are, and which of them have no outcome. */
  readonly outcomeRecords: number;
  readonly openOutcomes: readonly string[];
  /** How many steps of each live sequence are done, by the sequence's label. */
  readonly sequences: ReadonlyMap<string, number>;
}

/** One sequence at one moment, as its last commit has left it. */
export interface CommitSample {
  /** Milliseconds since the history began. */
  readonly at: number;
  readonly sequence: string;
  readonly done: number;
  /**
   * Which worker committed the last step, and from which entry of the queue. There is one of each
   * for one value of `done`.
   */
  readonly worker: string;
  readonly entry: string;
}

export interface ResourceSample {
  readonly at: number;
  readonly name: string;
  /** `natsPendingBytes`: what NATS holds back for one of its clients. */
  readonly what: "rssBytes" | "descriptors" | "usedMemoryBytes" | "natsPendingBytes";
  readonly value: number;
}

export type ResourceLimits = Readonly<Record<ResourceSample["what"], number>>;
