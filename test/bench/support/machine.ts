/** The machine and the versions behind the numbers, without which the numbers are worthless. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { root } from "../../support/fleet/root.js";

export function describeMachine() {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    loadBefore: loadavg()[0] ?? 0,
    node: process.version,
    onnxruntime: packageVersion("onnxruntime-node"),
    bullmq: packageVersion("bullmq"),
    redis: said("redis-server", ["--version"]),
    nats: said("nats-server", ["--version"]),
    commit: said("git", ["describe", "--always", "--dirty"]),
  };
}

function packageVersion(name: string): string {
  const file = join(root, "node_modules", name, "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

function said(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}
