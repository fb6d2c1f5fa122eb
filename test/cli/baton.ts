/** Runs the command line as users do, in its own environment. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../support/fleet/root.js";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly ended: Promise<Ended>;
  /** The standard output so far. */
  printed(): string;
  /** The standard error so far. */
  complained(): string;
  kill(signal: NodeJS.Signals): void;
  /** Closes the reading end of the standard output. */
  stopReading(): void;
}

export interface Surroundings {
  /** The gateway's URL; without this, BATON_URL is not set. */
  readonly url?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  readonly cwd?: string;
}

export const program = join(root, "cli/baton.mjs");

export function startBaton(args: readonly string[], { url, env, stdin, cwd }: Surroundings = {}): Running {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH, HOME, ...(url !== undefined && { BATON_URL: url }), ...env },
    cwd,
  });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on("data", (bytes: Buffer) => stdout.push(bytes));
  child.stderr.on("data", (bytes: Buffer) => stderr.push(bytes));
  child.stdin.on("error", () => undefined); // the command may end without reading
  child.stdin.end(stdin);
  const text = (chunks: readonly Buffer[]) => Buffer.concat(chunks).toString("utf8");
  return {
    ended: new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve({ code, stdout: text(stdout), stderr: text(stderr) }));
    }),
    printed: () => text(stdout),
    complained: () => text(stderr),
    kill: (signal) => void child.kill(signal),
    stopReading: () => void child.stdout.destroy(),
  };
}

export function baton(args: readonly string[], surroundings?: Surroundings): Promise<Ended> {
  return startBaton(args, surroundings).ended;
}
