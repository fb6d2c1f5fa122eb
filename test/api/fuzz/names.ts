/** The names in requests: of things that exist, and of no thing. */
import * as fc from "fast-check";
import type { Segment } from "./document.js";
import { anyText } from "./values.js";

/** Ids that exist, by the word before the segment. */
export const existing: Readonly<Record<string, readonly string[]>> = {
  models: ["simple", "accumulate", "tale-gpt"],
  versions: ["1"],
  sequences: ["<sequence>"],
  requests: ["<request>", "<tensors>", "<cancelled>"],
  jobs: ["<job>", "<delayed>", "<failed>"],
  dead: ["<dead>"],
  schedules: ["<schedule>"],
  webhooks: ["<webhook>"],
  deliveries: ["<delivery>"],
  batches: ["<batch>"],
  files: ["<file>"],
};
/** Values of parameters that are texts to the document, and have a meaning to the gateway. */
export const hints: Readonly<Record<string, readonly string[]>> = {
  job: ["<job>"],
  webhook: ["<webhook>"],
  schedule: ["<schedule>"],
  model: ["simple", "tale-gpt"],
  label: ["team:blue"],
  state: ["completed", "failed", "pending"],
  purpose: ["batch"],
  input_file_id: ["<file>", "file-none"],
};
const escapes = ["%2F", "%00", "%zz", "%ff", "%", "..", "%2e%2e", ".", "x".repeat(300)];

/** Segments of all kinds, escaped. */
export const segmentText = fc.oneof(
  { weight: 2, arbitrary: anyText.filter((text) => text !== "").map(encodeURIComponent) },
  { weight: 1, arbitrary: fc.constantFrom(...escapes) },
);

/** Names of no thing. */
export function unknownText({ pattern }: Segment): fc.Arbitrary<string> {
  return pattern === undefined
    ? segmentText.map((text) => (text.length === 1 ? `${text}none` : text))
    : fc.constantFrom("9", "0", "99999999999999999999");
}
