/**
 * The deaths of a worker's predecessors. A dead process shows no metrics, so its supervisor keeps
 * the numbers, and gives them to the next process in its environment.
 */

/** The variable with the numbers as JSON, by the signal or the exit code. */
export const DEATHS = "SUPERVISOR_SAW_DEATHS";

/** @returns the numbers by the signal or the exit code; none without a supervisor */
export function deathsIn(env: NodeJS.ProcessEnv): [string, number][] {
  return Object.entries(JSON.parse(env[DEATHS] ?? "{}") as Readonly<Record<string, number>>);
}
