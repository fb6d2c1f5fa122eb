/** `node test/api/record.mjs --compare | --write`: builds the recorder and runs it. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
process.exitCode =
  built.status !== 0
    ? 1
    : (spawnSync(process.execPath, [join(root, "dist/test/api/main.js"), ...process.argv.slice(2)], {
        cwd: root,
        stdio: "inherit",
      }).status ?? 1);
