import { describe, expect, it } from "vitest";
import { Solitude } from "./solitude.js";

/** A task that says when it begins and ends, and ends when told to. */
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

describe("Solitude", () => {
  it("lets batches share", async () => {
    const seen: string[] = [];
    const solitude = new Solitude();
    const [a, b] = [task("a", seen), task("b", seen)];
    void solitude.share(a.run);
    void solitude.share(b.run);
    await settled();
    expect(seen).toEqual(["a+", "b+"]);
  });

  it("lets a suspect wait for batches that run, and later batches for the suspect", async () => {
    const seen: string[] = [];
    const solitude = new Solitude();
    const [batch, suspect, later] = [task("batch", seen), task("suspect", seen), task("later", seen)];
    void solitude.share(batch.run);
    void solitude.alone(suspect.run);
    void solitude.share(later.run);
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
    const solitude = new Solitude();
    await expect(solitude.alone(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(solitude.share(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await solitude.alone(() => Promise.resolve(1))).toBe(1);
    expect(await solitude.share(() => Promise.resolve(2))).toBe(2);
  });
});
