/**
 * The real redis-server of a simulation: its own server, over a Unix socket, without files on a
 * disk.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { RunningProcess } from "../support/brokers/process.js";

export interface OwnRedis {
  readonly redis: Redis;
  dispose(): Promise<void>;
}

export async function startOwnRedis(): Promise<OwnRedis> {
  const folder = mkdtempSync(join(tmpdir(), "baton-simulation-"));
  const socket = join(folder, "redis.sock");
  // Small hashes keep the order of writing. Large hashes have an order that differs from run to
  // run.
  const ordered = ["--hash-max-listpack-entries", "100000", "--hash-max-listpack-value", "1000000"];
  const args = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--appendonly", "no", ...ordered];
  const logFile = join(folder, "redis.log");
  const process = new RunningProcess({ name: "redis", command: "redis-server", args, logFile });
  await process.waitForLine("ready", ({ text }) => /ready to accept connections/i.test(text) && text.includes(socket));
  const redis = new Redis(socket, { protocol: 2 });
  return {
    redis,
    async dispose() {
      redis.disconnect();
      await process.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
