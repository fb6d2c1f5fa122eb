import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lookAt, watchRepository } from "./look.js";

describe("a look at a repository", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-look-"));
    mkdirSync(join(folder, "m", "1"), { recursive: true });
    writeFileSync(join(folder, "m", "1", "model.onnx"), "one");
    writeFileSync(join(folder, "m", "config.pbtxt"), "");
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const look = (models?: readonly string[]) => lookAt([folder], models);

  it.each<[string, () => void]>([
    ["another size", () => writeFileSync(join(folder, "m", "1", "model.onnx"), "three")],
    ["another time", () => utimesSync(join(folder, "m", "config.pbtxt"), 1, 1)],
    ["a new version", () => mkdirSync(join(folder, "m", "2"))],
    ["a file that is gone", () => rmSync(join(folder, "m", "config.pbtxt"))],
    ["another name", () => renameSync(join(folder, "m"), join(folder, "n"))],
  ])("sees %s", async (_, change) => {
    const before = await look();
    expect(await look()).toBe(before);
    change();
    expect(await look()).not.toBe(before);
  });

  it("sees a file in place of another of its size and time", async () => {
    const [file, other] = [join(folder, "m", "1", "model.onnx"), join(folder, ".other")];
    utimesSync(file, 1, 1);
    const before = await look();
    writeFileSync(other, "two");
    utimesSync(other, 1, 1);
    renameSync(other, file);
    expect(await look()).not.toBe(before);
  });

  it("follows no link out of the repository, and no circle of links", async () => {
    const outside = mkdtempSync(join(tmpdir(), "baton-outside-"));
    try {
      symlinkSync(outside, join(folder, "m", "out"));
      for (const name of ["a", "b", "c"]) symlinkSync(join(folder, "m"), join(folder, "m", name));
      const before = await look();
      writeFileSync(join(outside, "file"), "");
      expect(await look()).toBe(before);
      writeFileSync(join(folder, "m", "1", "model.onnx"), "three");
      expect(await look()).not.toBe(before);
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it("follows links, and sees no hidden folders and no other models", async () => {
    symlinkSync(join(folder, "m"), join(folder, "linked"));
    const [before, ofLinked, ofOther] = [await look(), await look(["linked"]), await look(["other"])];
    mkdirSync(join(folder, ".git"));
    expect(await look()).toBe(before);
    writeFileSync(join(folder, "m", "1", "model.onnx"), "three");
    expect(await look(["linked"])).not.toBe(ofLinked);
    expect(await look(["other"])).toBe(ofOther);
  });
});

/** Watches a repository that looks like this, a text for each look; an Error for a failed look. */
async function watched(...looks: readonly (string | Error)[]): Promise<number[]> {
  const ending = new AbortController();
  const changes: number[] = [];
  let taken = 0;
  const look = () => {
    const seen = looks[taken++];
    if (seen === undefined) {
      ending.abort();
      return Promise.resolve("");
    }
    return seen instanceof Error ? Promise.reject(seen) : Promise.resolve(seen);
  };
  await watchRepository({ loaded: "a", look, everyMs: 0, onChange: () => changes.push(taken) }, ending.signal);
  return changes;
}

describe("a watch over a repository", () => {
  it("tells of a change once two looks agree", async () => {
    expect(await watched("a", "b", "c", "c", "c", "a", "a")).toEqual([4, 7]);
  });

  it("waits while files are copied, and tells of nothing if all is as before", async () => {
    expect(await watched("b", "c", "d", "a", "a")).toEqual([]);
  });

  it("takes a look that fails for no look", async () => {
    expect(await watched("b", new Error("away"), "c", new Error("away"), "c")).toEqual([5]);
  });
});
