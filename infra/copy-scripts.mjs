// Copies each Lua script and each protocol of gRPC beside its compiled wrapper in dist/, because
// tsc copies neither.
import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "..");
for (const folder of ["gateway", "worker", "shared"]) {
  for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
    if (!/\.(?:lua|proto)$/.test(file)) continue;
    const target = join(root, "dist", folder, file);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, folder, file), target);
  }
}
