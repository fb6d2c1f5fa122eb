#!/usr/bin/env node
/**
 * The program that `npx baton` runs. Starts the compiled command line. Without a build, explains
 * how to make a build.
 */
import { existsSync } from "node:fs";

const program = new URL("../dist/cli/main.js", import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  process.stderr.write("baton: this checkout has not been built: run `npm start`, or `npm ci && npm run build`\n");
  process.exitCode = 2;
}
