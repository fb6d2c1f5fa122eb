/** ONNX Runtime names files of the machine in some of its reasons; nobody outside gets to read those. */
export function withoutPaths(reason: string): string {
  return reason.replace(/(?:[A-Za-z]:)?(?:\/[\w.@+-]+){2,}(?::\d+)?/g, "…").slice(0, 1_000);
}
