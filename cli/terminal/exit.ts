/** How a command ends: the exit codes that scripts rely on, and the error that carries one. */
export const exitCodes = {
  done: 0,
  /** What was asked for failed, was cancelled or expired. */
  failed: 1,
  usage: 2,
  notFound: 3,
  /** The gateway refused the request, with another status of the client's fault. */
  refused: 4,
  /** The gateway cannot be reached, or cannot answer now. */
  unreachable: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends the command with an exit code. Its message is a sentence for the person at the terminal. */
export class Failure extends Error {
  readonly exit: ExitCode;

  constructor(exit: ExitCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}

/** @param status of an answer that is no success */
export function exitOfStatus(status: number): ExitCode {
  if (status === 404) return exitCodes.notFound;
  return status >= 400 && status < 500 ? exitCodes.refused : exitCodes.unreachable;
}
