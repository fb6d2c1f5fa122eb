/** What Redis holds when all is quiet, and what it held on the way: the evidence beside the history, as plain data. */

export interface DeadLetter {
  readonly sequence: string;
  readonly step: number;
  readonly reason: string;
  readonly runs: number;
}

/** Redis at quiescence. */
export interface Floor {
  readonly readyEntries: number;
  readonly pendingEntries: number;
  readonly waitKeys: readonly string[];
  readonly runsKeys: readonly string[];
  /** Keys that would stay for ever, of kinds that should not. */
  readonly keysWithoutTtl: readonly string[];
  /** Keys of no kind that Baton has. */
  readonly strangeKeys: readonly string[];
  readonly dead: readonly DeadLetter[];
  /** Outcome records, and those of them that have no outcome. */
  readonly outcomeRecords: number;
  readonly openOutcomes: readonly string[];
  /** Live sequences by label: how many steps are done. */
  readonly sequences: ReadonlyMap<string, number>;
}

/** One sequence at one moment, as its last commit has left it. */
export interface CommitSample {
  /** ms since the history began */
  readonly at: number;
  readonly sequence: string;
  readonly done: number;
  /** Whose commit it was, and of which entry: one `done`, one of each. */
  readonly worker: string;
  readonly entry: string;
}

export interface ResourceSample {
  readonly at: number;
  readonly name: string;
  readonly what: "rssBytes" | "descriptors" | "usedMemoryBytes";
  readonly value: number;
}

export type ResourceLimits = Readonly<Record<ResourceSample["what"], number>>;
