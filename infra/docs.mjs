// Writes the README's table of settings from the schemas that the processes parse, or with --check says whether it is current.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gatewaySettings } from "../dist/gateway/config.js";
import { sharedSettings } from "../dist/shared/settings.js";
import { workerSettings } from "../dist/worker/config.js";

const readme = join(import.meta.dirname, "..", "README.md");

function rows(schema, who, skip = {}) {
  return Object.entries(schema.shape)
    .filter(([name]) => !(name in skip))
    .map(([name, setting]) => {
      const given = setting.safeParse(undefined).data;
      return `| \`${name}\` | ${who} | ${given === undefined || given === "" ? "" : `\`${[given].flat().join(":")}\``} | ${setting.description} |`;
    });
}

const table = [
  "| variable | read by | default | meaning |",
  "| --- | --- | --- | --- |",
  ...rows(sharedSettings, "both"),
  ...rows(gatewaySettings, "gateway", sharedSettings.shape),
  ...rows(workerSettings, "worker", sharedSettings.shape),
].join("\n");

const before = readFileSync(readme, "utf8");
const after = before.replace(
  /<!-- settings -->[^]*<!-- \/settings -->/,
  `<!-- settings -->\n\n${table}\n\n<!-- /settings -->`,
);
if (process.argv.includes("--check")) {
  const narrow = (text) => text.replaceAll(/ {2,}|-{3,}/g, " ");
  if (narrow(before) !== narrow(after)) {
    console.error("README.md's table of settings is not current: run `npm run docs`");
    process.exit(1);
  }
} else {
  writeFileSync(readme, after);
}
