/**
 * The models of a run, and their configurations. Another model with sequences is a name in
 * `withSequences`; its bare loop is in `test/support/sequences/references.ts`.
 */
import type { Level } from "../support/sequences/sequences.js";
import { ownConfig } from "../support/fleet/repository.js";

/** Sequences take these models in turn, poison `pill` alone. `slow-sequence` has queue policies. */
export const withSequences = ["chain", "pill", "slow-sequence"];
/** The models of the bystanders. */
export const stateless = ["simple", "tells-slowly"];
/** The model of the streams of tokens. */
export const GENERATOR = "gen-mha";

/** The levels of `slow-sequence`, whose policies follow. */
export const levels: Readonly<Record<string, readonly Level[]>> = {
  "slow-sequence": [
    { priority: 1 },
    { priority: 2, mayFail: ["expired"] },
    { priority: 3 },
    { priority: 4, mayFail: ["queue_full"] },
  ],
};
const policies = `dynamic_batching {
  priority_levels: 4
  default_priority_level: 1
  priority_queue_policy { key: 2 value { timeout_action: REJECT default_timeout_microseconds: 250000 } }
  priority_queue_policy { key: 3 value { timeout_action: DELAY default_timeout_microseconds: 20000 } }
  priority_queue_policy { key: 4 value { max_queue_size: 1 } }
}`;

export interface Variations {
  /** How many levels of priority the bystanders' model has. */
  readonly priorities?: number;
  /** Second versions come beside the first during the run. */
  readonly rolled: boolean;
}

/** The changed configurations, by model. The other models run with their own. */
export function configurations({ priorities, rolled }: Variations): Record<string, string> {
  const ownOf = (model: string) => ownConfig(model) ?? "";
  const simple = `${ownOf("simple")}response_cache { enable: true }\n`;
  // A request that names no level has the lowest.
  const batching = `dynamic_batching { priority_levels: ${priorities} default_priority_level: ${priorities} `;
  return {
    simple: priorities === undefined ? simple : simple.replace("dynamic_batching { ", batching),
    // Runs a request at a time, and slowly, so that requests wait and policies have an effect. Only
    // the form of the tutorials has policies beside sequences: `timeout_action` makes it that.
    "slow-sequence": `${ownOf("slow-sequence")}parameters { key: "execute_delay_ms" value { string_value: "20" } }\n`
      .replace("max_batch_size: 64", "max_batch_size: 1")
      .replace(/ *oldest .*\n/, "")
      .replace("sequence_batching {", `${policies}\nsequence_batching {\n  timeout_action: TIMEOUT_REJECT`),
    // The policy is there from the start, because a changed configuration would make the first
    // version another model.
    ...(rolled && { chain: `${ownOf("chain")}version_policy { all { } }\n` }),
  };
}
