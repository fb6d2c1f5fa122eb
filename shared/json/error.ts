/** A text is no JSON, or exceeds a limit. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: string;
  /** Index of the byte at which the parser noticed the fault. */
  readonly position: number;

  constructor(reason: string, position: number) {
    super(`${reason} at ${position}`);
    this.reason = reason;
    this.position = position;
  }
}
