/** A refusal that one parameter of the request is to blame for: OpenAI's clients read which. */
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import { printJson } from "#shared/json/print.js";

export class ParameterFault extends InferenceError {
  readonly parameter: string;

  constructor(parameter: string, message: string, code: ErrorCode = "invalid_argument") {
    super(code, message);
    this.parameter = parameter;
  }
}

const maxShownLength = 64;

/** What the client gave, as far as a message has room for it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  const text = printJson(value);
  return text.length > maxShownLength ? `${text.slice(0, maxShownLength)}...` : text;
}
