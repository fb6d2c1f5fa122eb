/** What the model repository holds, by its folders, and which of it the running fleet serves. */
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { root } from "../setup/paths.mjs";
import { Refusal } from "../setup/refusal.mjs";

/** Names of the models that ought to be served, any among them that no folder has. */
export function listModels(repository, only) {
  const names = repository
    .split(":")
    .filter((folder) => folder !== "")
    .flatMap((folder) => subfolders(resolve(root, folder)));
  if (names.length === 0)
    throw new Refusal(
      `There is no model in ${repository} (BATON_MODEL_REPOSITORY): put one there, or unset it for the demo models.`,
    );
  const wanted = only ? only.split(",").map((name) => name.trim()) : names;
  if (!wanted.some((name) => names.includes(name)))
    throw new Refusal(
      `None of ${wanted.join(", ")} (BATON_MODELS) is in ${repository} (BATON_MODEL_REPOSITORY): it has ${names.join(", ")}.`,
    );
  return [...new Set(wanted)].sort((a, b) => (a < b ? -1 : 1));
}

function subfolders(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
      .map((entry) => entry.name);
  } catch (error) {
    throw new Refusal(
      `The model repository ${folder} cannot be read (${error.code}): set BATON_MODEL_REPOSITORY to a folder of models.`,
    );
  }
}

/**
 * Why this start's own workers could not load models, by name. A worker announces all of its models
 * at once. Undefined while not all of the workers have been heard of.
 * @param since when this start began: a worker that an earlier one left behind does not count.
 */
export async function failedModels(fleetUrl, workerCount, since) {
  const workers = await workersSince(fleetUrl, since);
  if (workers.length < workerCount) return undefined;
  return new Map(workers.flatMap(({ failed }) => failed).map(({ name, reason }) => [name, reason]));
}

async function workersSince(fleetUrl, since) {
  try {
    const { workers } = await (await fetch(fleetUrl, { signal: AbortSignal.timeout(2_000) })).json();
    return workers.filter(({ started_at: startedAt }) => Date.parse(startedAt) >= since);
  } catch {
    return []; // nobody listens yet, or Redis cannot be asked: the wait for models has its own end
  }
}

export async function isReady(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await response.arrayBuffer(); // an unread body keeps its connection open
    return response.ok;
  } catch {
    return false; // nobody listens yet
  }
}
