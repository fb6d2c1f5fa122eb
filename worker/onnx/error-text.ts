/**
 * Replaces paths in an error text of ONNX Runtime by "…", and keeps its first 1 000 characters.
 * Some of its texts name files of this machine, which no client gets to read.
 */
export function withoutPaths(reason: string): string {
  return reason.replace(/(?:[A-Za-z]:)?(?:\/[\w.@+-]+){2,}(?::\d+)?/g, "…").slice(0, 1_000);
}
