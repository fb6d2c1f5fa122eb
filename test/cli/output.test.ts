import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { baton, program } from "./baton.js";

// Linux has a file on which every write fails, as on a full disk.
it.skipIf(!existsSync("/dev/full"))("a result that cannot be written is a failure", () => {
  for (const args of [
    ["completion", "bash"],
    ["completion", "bash", "--json"],
  ]) {
    const full = openSync("/dev/full", "w");
    const { status, stderr } = spawnSync(process.execPath, [program, ...args], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
    });
    closeSync(full);
    expect([status, stderr]).toEqual([1, "baton: cannot write standard output (ENOSPC)\n"]);
  }
});

it("an answer that is no JSON, although it says so, is one sentence", async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end("{no");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    for (const args of [["fleet"], ["sequences", "show", "m", "1"], ["infer", "m", "-"]]) {
      const { code, stdout, stderr } = await baton(args, { url });
      expect([code, stdout]).toEqual([5, ""]);
      expect(stderr).toMatch(/^baton: the gateway's answer cannot be read: .*\n$/);
    }
  } finally {
    server.close();
  }
});
