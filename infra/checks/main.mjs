/**
 * `npm run check:house`: keeps the tree as ARCHITECTURE.md describes it. Prints a line for every
 * fault, and exits with 1 if there is a fault. A path as argument checks another checkout.
 */
import { resolve } from "node:path";
import { checkColumns } from "./columns.mjs";
import { listFiles } from "./files.mjs";
import { checkEnglish } from "./english.mjs";
import { checkFloor } from "./floor.mjs";
import { checkFolders } from "./folders.mjs";
import { checkLengths } from "./lengths.mjs";
import { checkOpenings } from "./openings.mjs";
import { checkReferences } from "./references.mjs";
import { checkRoles } from "./roles.mjs";
import { checkScripts } from "./scripts.mjs";
import { checkSettings } from "./settings.mjs";

const root = resolve(process.argv[2] ?? ".");
const files = listFiles(root);
const checks = [
  checkFolders,
  checkFloor,
  checkOpenings,
  checkScripts,
  checkColumns,
  checkLengths,
  checkReferences,
  checkSettings,
  checkRoles,
  checkEnglish,
];
const faults = checks.flatMap((check) => check(root, files));
for (const fault of faults) console.error(fault);
if (faults.length > 0) {
  console.error(`\n${faults.length} faults; infra/checks/README.md says what each check is for.`);
  process.exitCode = 1;
}
