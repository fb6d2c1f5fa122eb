/** `position` is the byte at which the text stopped making sense. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: string;
  readonly position: number;

  constructor(reason: string, position: number) {
    super(`${reason} at ${position}`);
    this.reason = reason;
    this.position = position;
  }
}
