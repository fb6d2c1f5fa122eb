import { describe, expect, it } from "vitest";
import { Exclusive } from "./exclusive.js";

/** A task that logs start and end, and ends when the test calls `end`. */
function task(name: string, seen: string[]) {
  let end = () => {};
  const run = async () => {
    seen.push(`${name}+`);
    await new Promise<void>((resolve) => (end = resolve));
    seen.push(`${name}-`);
  };
  return { run, end: () => end() };
}

const settled = () => new Promise(setImmediate);

describe("Exclusive", () => {
  it("lets batches share", async () => {
    const seen: string[] = [];
    const exclusive = new Exclusive();
    const [a, b] = [task("a", seen), task("b", seen)];
    void exclusive.share(a.run);
    void exclusive.share(b.run);
    await settled();
    expect(seen).toEqual(["a+", "b+"]);
  });

  it("lets a suspect wait for batches that run, and later batches for the suspect", async () => {
    const seen: string[] = [];
    const exclusive = new Exclusive();
    const [batch, suspect, later] = [task("batch", seen), task("suspect", seen), task("later", seen)];
    void exclusive.share(batch.run);
    void exclusive.alone(suspect.run);
    void exclusive.share(later.run);
    await settled();
    expect(seen).toEqual(["batch+"]);
    batch.end();
    await settled();
    expect(seen).toEqual(["batch+", "batch-", "suspect+"]);
    suspect.end();
    await settled();
    expect(seen).toEqual(["batch+", "batch-", "suspect+", "suspect-", "later+"]);
  });

  it("goes on after a task that failed", async () => {
    const exclusive = new Exclusive();
    await expect(exclusive.alone(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(exclusive.share(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await exclusive.alone(() => Promise.resolve(1))).toBe(1);
    expect(await exclusive.share(() => Promise.resolve(2))).toBe(2);
  });
});
