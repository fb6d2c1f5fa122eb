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

export async function isReady(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await response.arrayBuffer(); // an unread body keeps its connection open
    return response.ok;
  } catch {
    return false; // nobody listens yet
  }
}
