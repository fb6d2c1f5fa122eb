/**
 * The exit codes that supervisors act on. It imports nothing: a supervisor loads it before it
 * starts its worker.
 */

/** The settings are wrong, so starting again would not help: EX_CONFIG of sysexits.h. */
export const EXIT_UNUSABLE = 78;

/** Thrown where a process cannot run with the settings that it was given. */
export class UnusableError extends Error {
  override readonly name = "UnusableError";
}

/** The exit code of a process that could not start. */
export function exitCodeOf(error: unknown): number {
  return error instanceof UnusableError ? EXIT_UNUSABLE : 1;
}
