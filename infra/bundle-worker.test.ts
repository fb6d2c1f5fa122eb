import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const bundled = join(import.meta.dirname, "../dist/bundled/worker");
const files = readdirSync(bundled);

/** What the bundle's own import statements and calls name, wherever packages have none in texts. */
function importsOf(file: string): string[] {
  const code = readFileSync(join(bundled, file), "utf8");
  return [...code.matchAll(/^(?:import|export) [^;]*?from "([^"]+)";$|\bimport\("([^"]+)"\)/gm)].map(
    ([, named, called]) => named ?? called ?? "",
  );
}

describe("the worker's bundle", () => {
  it("is a few files, which import nothing but each other and Node's own modules", () => {
    expect(files).toContain("main.js");
    expect(files.length).toBeLessThanOrEqual(8);
    const others = files.flatMap(importsOf).filter((name) => !isBuiltin(name) && !files.includes(name.slice(2)));
    expect(others).toEqual([]);
  });

  it("has left out the languages of a package that has sixty", () => {
    const locales = files.flatMap((file) =>
      [...readFileSync(join(bundled, file), "utf8").matchAll(/zod\/v4\/locales\/(\w+)\.js/g)].map(([, name]) => name),
    );
    expect(locales).toEqual(["en"]);
  });
});
