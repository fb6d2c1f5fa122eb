/**
 * The exit codes that supervisors act on. This file imports nothing, because a supervisor loads it
 * before it starts a worker.
 */

/** The settings are wrong, so a restart would not help: EX_CONFIG of sysexits.h. */
export const EXIT_UNUSABLE = 78;

/** The process cannot run with its settings. */
export class UnusableError extends Error {
  override readonly name = "UnusableError";
}

/** The exit code of a process that failed to start. */
export function exitCodeOf(error: unknown): number {
  return error instanceof UnusableError ? EXIT_UNUSABLE : 1;
}
