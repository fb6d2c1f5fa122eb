/** The texts of a job and of a schedule for a model, which a user changes before sending them. */
import type { ModelMetadata } from "../../../gateway/answers.js";
import { fill, tensorsText } from "../filling.js";

export interface Target {
  readonly inputs: ModelMetadata["inputs"];
  /** Whether the model writes text. */
  readonly isGenerator: boolean;
  /** Whether each request to the model is a step of a sequence. */
  readonly remembers: boolean;
}

/** @returns the job in JSON */
export function jobText(target: Target): string {
  return `{\n${requestText(target)}\n}`;
}

/** @returns a schedule of this job in JSON, for each working day in the zone of the browser */
export function scheduleText(target: Target, timezone: string): string {
  const when = `"cron": "30 9 * * 1-5", "timezone": ${JSON.stringify(timezone)}`;
  return `{\n${when},\n"job": {${requestText(target)}}\n}`;
}

function requestText({ inputs, isGenerator, remembers }: Target): string {
  if (isGenerator) return `"generate": {"text_input": "Write a short story about a dragon.", "max_tokens": 40}`;
  const parameters = remembers ? `"parameters": {"sequence_id": 1, "sequence_start": true},\n` : "";
  return `"infer": {${parameters}"inputs": ${tensorsText(inputs.map((input) => fill(input, Math.random)))}}`;
}
