/** Steps of sequences, and requests of clients beside the console. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/fleet/root.js";

/** The configuration of `accumulate`, which then keeps earlier checkpoints. */
export const withHistory = {
  accumulate:
    readFileSync(join(root, "infra/models/accumulate/config.pbtxt"), "utf8") +
    'parameters { key: "checkpoint_history" value: { string_value: "8" } }\n',
};

/**
 * Sends a step. `accumulate` takes integers as ids of sequences, and `chain` takes texts, too.
 * @returns the output: of `accumulate`, the sum so far
 */
export async function step(
  url: string,
  id: number | string,
  value: number,
  { start = false, model = "accumulate" } = {},
): Promise<number> {
  const response = await fetch(`${url}/v2/models/${model}/infer`, {
    method: "POST",
    body: JSON.stringify({
      parameters: { sequence_id: id, sequence_start: start },
      inputs: [{ name: "INPUT", datatype: model === "chain" ? "INT64" : "INT32", shape: [1, 1], data: [value] }],
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const { outputs } = JSON.parse(text) as { outputs: { name: string; data: number[] }[] };
  return outputs.find(({ name }) => name === "OUTPUT")?.data[0] ?? Number.NaN;
}

/** Begins a sequence of this many steps, each of which adds its number. */
export async function begin(url: string, id: number | string, steps: number, model = "accumulate"): Promise<void> {
  for (let i = 1; i <= steps; i++) await step(url, id, i, { start: i === 1, model });
}
