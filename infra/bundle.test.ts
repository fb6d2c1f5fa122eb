import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

describe.each([
  ["worker", ["main.js"], []],
  ["gateway", ["jobs.js", "main.js"], ["@aws-sdk/client-s3", "@bull-board/api", "@bull-board/hono"]],
])("the bundle of the %s", (name, programs, packages) => {
  const bundled = join(import.meta.dirname, "../dist/bundled", name);
  const files = readdirSync(bundled);

  /** What its own import statements and calls name, wherever packages have none in texts. */
  function importsOf(file: string): string[] {
    const code = readFileSync(join(bundled, file), "utf8");
    return [...code.matchAll(/^(?:import|export) [^;]*?from "([^"]+)";$|\bimport\("([^"]+)"\)/gm)].map(
      ([, named, called]) => named ?? called ?? "",
    );
  }

  it("is a few files, which import little but each other and Node's modules", () => {
    expect(files).toEqual(expect.arrayContaining(programs));
    expect(files.length).toBeLessThanOrEqual(8);
    const others = files.flatMap(importsOf).filter((other) => !isBuiltin(other) && !files.includes(other.slice(2)));
    const found = others.map((other) => /^(?:@[^/]+\/)?[^/]+/.exec(other)?.[0] ?? other);
    expect([...new Set(found)].sort()).toEqual(packages);
  });

  it("has left out the languages of a package that has sixty", () => {
    const code = files.map((file) => readFileSync(join(bundled, file), "utf8")).join("");
    const locales = [...code.matchAll(/zod\/v4\/locales\/(\w+)\.js/g)].map(([, locale]) => locale);
    expect(locales).toEqual(["en"]);
  });
});
