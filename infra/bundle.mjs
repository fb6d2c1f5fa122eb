// Joins the worker's main thread, and the gateway's with the jobs process, into a few files below
// dist/bundled/. Node spends more on finding and reading each of some 400 modules than on most of
// what is in them: a worker's start takes a third less of the processor this way, a gateway's half.
// All else runs as it is compiled.
import { dirname, join, relative } from "node:path";
import { rolldown } from "rolldown";

const dist = join(import.meta.dirname, "../dist");

await bundle("worker", { main: "worker/main.js" });
// The board looks for the files of its page beside itself, and few start what speaks to S3.
await bundle("gateway", { main: "gateway/main.js", jobs: "gateway/jobs/main.js" }, /^@(?:aws-sdk|bull-board)\//);

/**
 * @param {string} folder
 * @param {Record<string, string>} programs compiled files, by what they are called in the folder
 * @param {RegExp} [external] what is imported as it is
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
        // A module names the Lua scripts and threads beside it, which stay where they are.
        transform(code, id) {
          if (dirname(relative(dist, id)).startsWith("..") || !code.includes("import.meta.url")) return null;
          const there = JSON.stringify(relative(dir, id));
          return code.replaceAll("import.meta.url", `new URL(${there}, import.meta.url).href`);
        },
      },
    ],
    onLog(level, log) {
      if (level === "warn") throw new Error(log.message);
    },
  });
  await built.write({ dir, format: "esm", cleanDir: true, chunkFileNames: "[name].js" });
  await built.close();
}
