/** Which path answers the lines of a file. */
import { parseJson } from "../../client/json.js";

/** @param text the beginning of the file @returns the path in its first line, or undefined */
export function endpointIn(text: string): string | undefined {
  const first = text.split("\n").find((line) => line.trim() !== "");
  if (first === undefined) return undefined;
  try {
    const line = parseJson(first);
    if (typeof line !== "object" || line === null || !("url" in line)) return undefined;
    return typeof line.url === "string" ? line.url : undefined;
  } catch {
    return undefined;
  }
}
