import { expect, it } from "vitest";
import { openThread } from "./guard.js";

it("says why a thread has not opened, also if its exit comes with its reason", async () => {
  const says = `import { parentPort } from "node:worker_threads"; parentPort.postMessage({ kind: "failed", reason: "why" });`;
  const fatal: string[] = [];
  const opening = openThread(new URL(`data:text/javascript,${encodeURIComponent(says)}`), {}, (reason) => {
    fatal.push(reason);
  });
  // This thread reads nothing meanwhile, so the message and the exit both wait for its next read.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  await expect(opening).rejects.toThrow("why");
  expect(fatal).toEqual([]);
});
