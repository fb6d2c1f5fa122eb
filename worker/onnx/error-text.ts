/**
 * Replaces paths in an error text of ONNX Runtime by "…", and keeps the first 1 000 characters.
 * Some of the texts name files of this machine, which clients must not read.
 */
export function withoutPaths(reason: string): string {
  return reason.replace(/(?:[A-Za-z]:)?(?:\/[\w.@+-]+){2,}(?::\d+)?/g, "…").slice(0, 1_000);
}
