// Joins the worker's main thread, and the gateway's with the jobs process, into a few files below
// dist/bundled/, and lets V8 compile them. Finding and reading some 400 modules takes Node longer
// than running most of their code, and half of the rest is V8's compiling (decisions/0027). All
// other code runs as tsc compiles it.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

/** The exit code of a process that has stored V8's compiled code; no other end has this code. */
const KEPT = 99;
const dist = join(import.meta.dirname, "../dist");

// The board and gRPC's reflection look for files beside themselves, and few deployments need the
// code for S3 or for traces.
await bundle("worker", { main: "worker/main.js" }, /^@opentelemetry\//);
const rarely = /^@(?:aws-sdk|bull-board|opentelemetry)\/|^@grpc\/reflection$/;
await bundle("gateway", { main: "gateway/main.js", jobs: "gateway/doors/jobs/main.js" }, rarely);

/**
 * @param {string} folder
 * @param {Record<string, string>} programs compiled files, by their names in the folder
 * @param {RegExp} [external] modules that stay imports
 */
async function bundle(folder, programs, external) {
  const dir = join(dist, "bundled", folder);
  const input = Object.fromEntries(Object.entries(programs).map(([name, file]) => [name, join(dist, file)]));
  const built = await rolldown({
    input,
    platform: "node",
    ...(external === undefined ? {} : { external }),
    plugins: [
      {
        name: "where a module was compiled to",
        // A module names the Lua scripts and threads beside it, and these files do not move. The
        // package that shared/redis/connect.ts requires is part of the bundle, too.
        transform(code, id) {
          if (dirname(relative(dist, id)).startsWith("..") || !code.includes("import.meta.url")) return null;
          const there = JSON.stringify(relative(dir, id));
          return code
            .replaceAll(/createRequire\(import\.meta\.url\)(\("[a-z])/g, "require$1")
            .replaceAll("import.meta.url", `new URL(${there}, import.meta.url).href`);
        },
      },
    ],
    onLog(level, log) {
      if (level === "warn") throw new Error(log.message);
    },
  });
  await built.write({
    dir,
    format: "cjs",
    cleanDir: true,
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name].cjs",
    comments: false,
  });
  await built.close();
  // V8 reads a pure ASCII text in a third of the time, and keeps the text in half of the memory.
  for (const file of readdirSync(dir)) {
    const code = readFileSync(join(dir, file), "utf8");
    writeFileSync(join(dir, file), code.replaceAll(/[^\0-\x7f]/g, escaped));
  }
  const names = Object.keys(programs);
  const parts = readdirSync(dir).filter((file) => !names.includes(file.replace(/\.cjs$/, "")));
  for (const name of names) {
    const start = `import { join } from "node:path";
      import { runProgram } from "../../shared/program.js";
      runProgram(join(import.meta.dirname, "${name}.cjs"));`;
    writeFileSync(join(dir, `${name}.js`), start.replaceAll(/^ +/gm, "") + "\n");
    compile(
      join(dir, `${name}.js`),
      parts.map((part) => join(dir, part)),
    );
  }
}

/**
 * @param {string} character a UTF-16 code unit
 */
function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * Starts the program with a setting that it refuses after loading all modules, and stores the code
 * that V8 has compiled by then.
 *
 * @param {string} program
 * @param {string[]} parts files that it loads later
 */
function compile(program, parts) {
  const { NODE_OPTIONS: _, ...env } = process.env;
  // An exit at once would leave the first file half loaded.
  const code = `
    import { keepCompiled } from ${JSON.stringify(pathToFileURL(join(dist, "shared/program.js")).href)};
    const { exit } = process;
    process.exit = () => {
      throw new Error("refused");
    };
    process.on("unhandledRejection", ({ message }) => {
      if (message !== "refused") throw new Error(message);
      keepCompiled(${JSON.stringify(parts)});
      exit(${KEPT});
    });
    await import(${JSON.stringify(pathToFileURL(program).href)});`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    env: { ...env, BATON_LEASE_MS: "none" },
    encoding: "utf8",
  });
  if (status !== KEPT) throw new Error(`${program} was not compiled (${status}): ${stderr}`);
}
