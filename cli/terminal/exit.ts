/**
 * How a command ends: the exit codes that scripts rely on, and the error that carries an exit code.
 */
export const exitCodes = {
  done: 0,
  /** The request has failed or expired, or a client has cancelled the request. */
  failed: 1,
  usage: 2,
  notFound: 3,
  /** The gateway refused the request, with a 4xx status other than 404. */
  refused: 4,
  /** The client cannot reach the gateway, or the gateway cannot answer now. */
  unreachable: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends the command with an exit code. The message is a sentence for the user. */
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
