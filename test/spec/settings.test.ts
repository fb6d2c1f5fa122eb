import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../support/fleet/root.js";

describe("a process with wrong settings", () => {
  it.each(["gateway", "worker"])("names them all, and ends with 78 at once: %s", (program) => {
    const env = { ...process.env, BATON_LEASE_MS: "5", BATON_LOG_LEVEL: "loud" };
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "dist", program, "main.js")], {
      env,
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    expect(stderr).toMatch(/^settings: BATON_LEASE_MS: .*; BATON_LOG_LEVEL: .*\n$/);
  });

  it.each(["gateway", "worker"])("does not take a broker's address of no known kind for a socket: %s", (program) => {
    const env = {
      ...process.env,
      BATON_REDIS_URL: "redis+proxy://a:26379/main",
      BATON_NATS_URL: "http://:pw@b:4222",
    };
    // Without the check neither process would ever end.
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "dist", program, "main.js")], {
      env,
      encoding: "utf8",
      timeout: 20_000,
    });
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    expect(stderr).toMatch(/^settings: BATON_REDIS_URL: .*redis\+proxy:\/\/.*; BATON_NATS_URL: .*http:\/\/.*\n$/);
    expect(stderr).not.toContain("pw");
  });
});
