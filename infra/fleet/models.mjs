/** What the model repository holds, by its folders, and which of it the running fleet serves. */
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { root } from "../setup/paths.mjs";
import { Refusal } from "../setup/refusal.mjs";

/** Names of the models that ought to be served. */
export function listModels(repository, only) {
  const wanted = only ? only.split(",").map((name) => name.trim()) : undefined;
  const names = repository
    .split(":")
    .filter((folder) => folder !== "")
    .flatMap((folder) => subfolders(resolve(root, folder)));
  const models = names.filter((name) => wanted === undefined || wanted.includes(name)).sort();
  if (models.length === 0)
    throw new Refusal(
      `There is no model in ${repository} (BATON_MODEL_REPOSITORY): put one there, or unset it for the demo models.`,
    );
  return models;
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

/** Models that every live worker has failed to load, with the reason: waiting for those would be for nothing. */
export async function failedModels(fleetUrl) {
  try {
    const { workers } = await (await fetch(fleetUrl, { signal: AbortSignal.timeout(2_000) })).json();
    const reasons = new Map(workers.flatMap(({ failed }) => failed).map(({ name, reason }) => [name, reason]));
    return new Map(
      [...reasons].filter(([name]) => workers.every(({ failed }) => failed.some((one) => one.name === name))),
    );
  } catch {
    return new Map(); // the wait for models has its own end
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
