import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { Script } from "node:vm";
import { describe, expect, it } from "vitest";

/** For traces. */
const tracing = ["api", "exporter-trace-otlp-http", "resources", "sdk-trace-base"].map(
  (one) => `@opentelemetry/${one}`,
);

describe.each([
  ["worker", ["main"], tracing],
  [
    "gateway",
    ["jobs", "main"],
    ["@aws-sdk/client-s3", "@bull-board/api", "@bull-board/hono", "@grpc/reflection", ...tracing],
  ],
])("the bundle of the %s", (name, programs, packages) => {
  const bundled = join(import.meta.dirname, "../dist/bundled", name);
  const all = readdirSync(bundled);
  const files = all.filter((file) => file.endsWith(".cjs"));

  const read = (file: string) => readFileSync(join(bundled, file), "utf8");

  /**
   * The imports at the head of the bundle, without a package's attempts to import optional
   * packages.
   */
  function importsOf(file: string): string[] {
    const code = read(file);
    return [...code.matchAll(/^let \w+ = (?:[\w.]+\()?require\("([^"]+)"\)/gm)].map(([, named]) => named ?? "");
  }

  it("is a few files, which import little but each other and Node's modules", () => {
    expect(all).toEqual(expect.arrayContaining(programs.flatMap((program) => [`${program}.js`, `${program}.cjs`])));
    expect(files.length).toBeLessThanOrEqual(14);
    const others = files.flatMap(importsOf).filter((other) => !isBuiltin(other) && !files.includes(other.slice(2)));
    const found = others.map((other) => /^(?:@[^/]+\/)?[^/]+/.exec(other)?.[0] ?? other);
    expect([...new Set(found)].sort()).toEqual(packages);
  });

  it("is compiled already, and V8 takes that", () => {
    for (const file of files) {
      const source = `(function (exports, require, module, __filename, __dirname) {${read(file)}\n})`;
      const cachedData = readFileSync(join(bundled, `${file}.compiled`));
      expect(new Script(source, { cachedData }).cachedDataRejected, file).toBe(false);
    }
  });

  it("has left out the languages of a package that has sixty", () => {
    const code = files.map((file) => read(file)).join("");
    const locales = [...code.matchAll(/zod\/v4\/locales\/(\w+)\.js/g)].map(([, locale]) => locale);
    expect(locales).toEqual(["en"]);
  });
});
