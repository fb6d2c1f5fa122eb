/** The access log of a fleet's gateways, which its tests read as an operator would. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { readUntil } from "../support/until.js";

/** The members of a line, in their order. */
export const members = [
  "time",
  "id",
  "request",
  "gateway",
  "tenant",
  "client",
  "protocol",
  "method",
  "route",
  "path",
  "model",
  "version",
  "sequence",
  "step",
  "status",
  "code",
  "replayed",
  "bytes_in",
  "bytes_out",
  "ms",
  "first_ms",
  "queue_ms",
  "run_ms",
  "worker",
  "records",
  "tokens_in",
  "tokens_out",
  "ended",
  "trace",
  "agent",
] as const;

export type Line = Readonly<Record<(typeof members)[number], unknown>>;

/** A folder for access logs, which goes with the test file. */
export function logFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "baton-access-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** All lines so far. */
export function linesOf(path: string): Line[] {
  if (!existsSync(path)) return [];
  const texts = readFileSync(path, "latin1").split("\n").slice(0, -1);
  return texts.map((text) => JSON.parse(text) as Line);
}

/** Waits for the lines of which `isWanted` is true. @param count how many there will be */
export async function linesWith(path: string, isWanted: (line: Line) => boolean, count = 1): Promise<Line[]> {
  const wanted = async () => linesOf(path).filter(isWanted);
  return readUntil(wanted, ({ length }) => length >= count, { patienceMs: 20_000 });
}

/** Waits for the line of the answer with this `x-request-id`. */
export async function lineOf(path: string, id: string): Promise<Line | undefined> {
  return (await linesWith(path, (line) => line.id === id))[0];
}
