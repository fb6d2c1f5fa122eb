/** Sends requests to a fleet, and reads its statistics. */
import { expect } from "vitest";
import { readUntil } from "../support/until.js";

interface Spent {
  readonly count: number;
  readonly ns: number;
}

interface Computed {
  readonly compute_input: Spent;
  readonly compute_infer: Spent;
  readonly compute_output: Spent;
}

export interface VersionStatistics {
  readonly name: string;
  readonly version: string;
  readonly last_inference: number;
  readonly inference_count: number;
  readonly execution_count: number;
  readonly inference_stats: Computed &
    Readonly<Record<"success" | "fail" | "queue" | "cache_hit" | "cache_miss", Spent>>;
  readonly response_stats: Readonly<Record<string, Readonly<Record<"success" | "fail" | "cancel", Spent>>>>;
  readonly batch_stats: readonly (Computed & { readonly batch_size: number })[];
  readonly memory_usage: readonly unknown[];
}

/** @returns the status of the answer */
export async function infer(
  url: string,
  model: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const path = `${url}/v2/models/${model}/infer`;
  const answer = await fetch(path, { method: "POST", body: JSON.stringify(body), headers });
  await answer.arrayBuffer();
  return answer.status;
}

export function step(sequence: number, flags: object = {}): object {
  return {
    parameters: { sequence_id: sequence, ...flags },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
  };
}

export const simple = {
  inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(1) })),
};

export async function statistics(url: string, path: string): Promise<readonly VersionStatistics[]> {
  const answer = await fetch(`${url}/v2/models/${path}`);
  const body = (await answer.json()) as { readonly model_stats: readonly VersionStatistics[] };
  expect([answer.status, body]).toEqual([200, expect.anything()]);
  return body.model_stats;
}

/** The statistics of the model's only version, once it has so many successes. */
export async function settled(url: string, model: string, successes: number): Promise<VersionStatistics> {
  const read = async () => (await statistics(url, `${model}/stats`))[0] ?? expect.fail("the model is served");
  return readUntil(read, (one) => one.inference_stats.success.count >= successes, { patienceMs: 5_000 });
}

/** The sum of runs over all sizes of batches. */
export function runsOf({ batch_stats }: VersionStatistics): number {
  return batch_stats.reduce((sum, { compute_infer }) => sum + compute_infer.count, 0);
}

/** How many requests for the model have succeeded, as a gateway says. */
export async function successesOf(url: string, model: string): Promise<number> {
  return (await settled(url, model, 0)).inference_stats.success.count;
}

/** A sum below an earlier one at the same gateway; undefined if there was none. */
export async function watchFalls(
  urls: readonly string[],
  model: string,
  isOver: () => boolean,
): Promise<number | undefined> {
  const highest = urls.map(() => 0);
  while (!isOver()) {
    for (const [i, url] of urls.entries()) {
      const now = await successesOf(url, model);
      if (now < (highest[i] ?? 0)) return now;
      highest[i] = now;
    }
  }
  return undefined;
}
