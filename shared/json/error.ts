/** A text is no JSON, or more than is accepted. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: string;
  /** Index of the byte at which it was noticed. */
  readonly position: number;

  constructor(reason: string, position: number) {
    super(`${reason} at ${position}`);
    this.reason = reason;
    this.position = position;
  }
}
