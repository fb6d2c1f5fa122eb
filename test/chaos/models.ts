/**
 * The models of a run, and their configurations. Another model with sequences is a name in
 * `withSequences`; its bare loop is in `test/support/sequences/references.ts`.
 */
import type { Level } from "../support/sequences/sequences.js";
import { ownConfig, withParameter } from "../support/fleet/repository.js";

/**
 * Sequences take these models in turn, poison `pill` alone. A worker that starts loads them all, so
 * each more makes a run longer.
 */
export const withSequences = ["chain", "pill", "chain-twice"];
/** The models of the bystanders. */
export const stateless = ["simple", "tells-slowly"];
/** The model of the streams of tokens. */
export const GENERATOR = "gen-mha";

/** The levels of the policies that follow. */
const policed: readonly Level[] = [
  { priority: 1 },
  { priority: 2, mayFail: ["expired"] },
  { priority: 3 },
  { priority: 4, mayFail: ["queue_full"] },
];
const policies = `dynamic_batching {
  priority_levels: 4
  default_priority_level: 1
  priority_queue_policy { key: 2 value { timeout_action: REJECT default_timeout_microseconds: 250000 } }
  priority_queue_policy { key: 3 value { timeout_action: DELAY default_timeout_microseconds: 20000 } }
  priority_queue_policy { key: 4 value { max_queue_size: 1 } }
}`;

export const levels: Readonly<Record<string, readonly Level[]>> = { pill: policed, simple: policed };

/** @param rolled whether second versions come beside the first during the run */
export function configurations(rolled: boolean): Record<string, string> {
  return {
    simple: `${slowed("simple")}response_cache { enable: true }\n`.replace(/dynamic_batching .*/, policies),
    // Only the form of the tutorials has policies beside sequences: `timeout_action` makes it that.
    pill: withParameter(slowed("pill"), "implicit_start", "false")
      .replace(/ *oldest .*\n/, "")
      .replace("sequence_batching {", `${policies}\nsequence_batching {\n  timeout_action: TIMEOUT_REJECT`),
    // The policy is there from the start, because a changed configuration would make the first
    // version another model.
    ...(rolled && { chain: `${ownOf("chain")}version_policy { all { } }\n` }),
  };
}

const ownOf = (model: string) => ownConfig(model) ?? "";

/** A model that runs a request at a time, for 20 ms, so that requests wait and policies count. */
function slowed(model: string): string {
  const config = ownOf(model).replace(/max_batch_size: \d+/, "max_batch_size: 1");
  return withParameter(config, "execute_delay_ms", "20");
}
