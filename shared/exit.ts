/** Exit codes that others act on. Imports nothing: a supervisor reads it before it starts its worker. */

/** Wrong settings: starting again would not help. EX_CONFIG of sysexits. */
export const EXIT_UNUSABLE = 78;

/** Thrown where a process cannot run with the settings that it was given. */
export class UnusableError extends Error {
  override readonly name = "UnusableError";
}

/** With which code a process ends that could not start. */
export function exitCodeOf(error: unknown): number {
  return error instanceof UnusableError ? EXIT_UNUSABLE : 1;
}
