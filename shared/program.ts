/**
 * Runs a program that the build has joined into a few CommonJS files (infra/bundle.mjs). V8's
 * compiled code lies beside each file, so a start does not compile the files again. V8 refuses
 * compiled code from another version or with other flags, and then compiles the file.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";

interface Loaded {
  readonly script: Script;
  /** The CommonJS module. */
  readonly module: { exports: unknown };
}

type Wrapper = (exports: unknown, require: (id: string) => unknown, module: object, file: string, dir: string) => void;

const loaded = new Map<string, Loaded>();

/** @param file the path of the program's first file */
export function runProgram(file: string): void {
  load(file);
}

/** For the build: loads these files, and writes V8's compiled code of every loaded file to disk. */
export function keepCompiled(files: readonly string[]): void {
  for (const file of files) load(file);
  for (const [file, { script }] of loaded) writeFileSync(compiledOf(file), script.createCachedData());
}

function compiledOf(file: string): string {
  return `${file}.compiled`;
}

function load(file: string): unknown {
  const known = loaded.get(file);
  if (known !== undefined) return known.module.exports;
  const source = `(function (exports, require, module, __filename, __dirname) {${readFileSync(file, "utf8")}\n})`;
  const script = new Script(source, {
    filename: file,
    cachedData: readIfThere(compiledOf(file)),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const module = { exports: {} };
  loaded.set(file, { script, module });
  const requireOthers = createRequire(file);
  const require = (id: string): unknown => (id.startsWith("./") ? load(join(dirname(file), id)) : requireOthers(id));
  (script.runInThisContext() as Wrapper)(module.exports, require, module, file, dirname(file));
  return module.exports;
}

/** @returns undefined if the build stopped before it wrote the file */
function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}
