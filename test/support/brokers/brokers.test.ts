import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "nats";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../until.js";
import { startNats } from "./nats.js";
import { RunningProcess } from "./process.js";
import { startRedis } from "./redis.js";
import { resourcesOf } from "./resources.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-brokers-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("startRedis", () => {
  it("keeps what it acknowledged across kill -9 and restart on the same port", async () => {
    const redis = await startRedis(folder);
    const client = redis.connect();
    try {
      await client.set("kept", "yes");
      await redis.kill();
      expect(redis.process.alive).toBe(false);
      await redis.restart();
      expect(await client.get("kept")).toBe("yes");
      expect(await client.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
      expect(await client.config("GET", "appendfsync")).toEqual(["appendfsync", "always"]);
    } finally {
      client.disconnect();
      await redis.dispose();
    }
  });

  it("answers nothing while frozen, everything once thawed", async () => {
    const redis = await startRedis(folder);
    const client = redis.connect();
    try {
      await client.ping();
      redis.freeze();
      let answered = false;
      const pong = client.ping().then((said) => {
        answered = true;
        return said;
      });
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(answered).toBe(false);
      redis.thaw();
      expect(await pong).toBe("PONG");
    } finally {
      client.disconnect();
      await redis.dispose();
    }
  });
});

describe("startNats", () => {
  it("says how much it holds back for each client", async () => {
    const nats = await startNats(folder);
    const client = await connect({ servers: nats.url });
    try {
      // The answer to the client's first PING may be on its way.
      await expect.poll(() => nats.pendingBytes()).toEqual([0]);
      await nats.kill();
      await expect(nats.pendingBytes()).rejects.toThrow();
    } finally {
      await client.close();
      await nats.dispose();
    }
  });

  it("has what JetStream has acknowledged after kill -9", async () => {
    const nats = await startNats(folder);
    const client = await connect({ servers: nats.url, waitOnFirstConnect: true, maxReconnectAttempts: -1 });
    try {
      const manager = await client.jetstreamManager();
      await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
      await client.jetstream().publish("kept", "one");
      await nats.kill();
      await nats.restart();
      await until(async () => (await manager.streams.info("KEPT").catch(() => undefined))?.state.messages === 1);
    } finally {
      await client.close();
      await nats.dispose();
    }
  });

  it("comes back on its port after kill -9", async () => {
    const nats = await startNats(folder);
    try {
      const { pid } = nats.process;
      await nats.kill();
      await nats.restart();
      expect(nats.process.pid).not.toBe(pid);
      expect(nats.process.alive).toBe(true);
    } finally {
      await nats.dispose();
    }
  });
});

describe("RunningProcess", () => {
  const launch = (script: string) =>
    new RunningProcess({
      name: "node",
      command: process.execPath,
      args: ["-e", script],
      logFile: join(folder, "node.log"),
    });

  it("kills the whole group: a child does not outlive it", async () => {
    const running = launch(`
      const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" });
      console.log(JSON.stringify({ msg: "up", child: child.pid }));
      setInterval(() => {}, 1000);`);
    const child = Number((await running.waitForMessage("up")).fields["child"]);
    expect([...(await resourcesOf(running.pid)).keys()]).toEqual(expect.arrayContaining([running.pid, child]));
    expect(await running.kill()).toEqual({ code: null, signal: "SIGKILL" });
    expect((await resourcesOf(running.pid)).size).toBe(0);
    expect(running.signalGroup("SIGTERM")).toBe(false);
  });

  it("fails a wait with the last output when the process exits first", async () => {
    const running = launch(`console.log("so far"); process.exit(3)`);
    await expect(running.waitForMessage("never")).rejects.toThrow(/exited \(3\).*so far/s);
  });

  it("reports a program that does not exist as an exit", async () => {
    const running = new RunningProcess({
      name: "nothing",
      command: "/does/not/exist",
      args: [],
      logFile: join(folder, "nothing.log"),
    });
    await expect(running.waitForMessage("never")).rejects.toThrow(/ENOENT/);
  });
});
