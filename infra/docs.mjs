/**
 * Writes the generated parts of the documents: in docs/settings.md the table of settings, from the
 * processes' schemas; in docs/errors.md the codes and texts of errors; in docs/api.md the declared
 * endpoints; in docs/metrics.md the families of metrics; in docs/configuration.md the verdicts on
 * fields of configurations; in ARCHITECTURE.md the graph of folders,
 * from the imports; in test/README.md the table of test files. With --check it only says whether
 * the parts are current. It needs a build.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { globalRegistry, safeParse } from "zod";
import { endpointSections, refusalList } from "./api-page.mjs";
import { drawFolders } from "./checks/draw.mjs";
import { codeTable, textTable } from "./error-tables.mjs";
import { metricTables } from "./metric-tables.mjs";
import { testTable } from "./test-table.mjs";
import { fieldTable, parameterTable } from "./verdict-table.mjs";

// The import names are computed, because type checks run before the files of the build exist.
const dist = new URL("../dist/", import.meta.url).href;
/** @type {typeof import("../gateway/endpoints.js")} */
const { groups } = await import(`${dist}gateway/endpoints.js`);
/** @type {typeof import("../gateway/api/endpoint/refusals.js")} */
const refusals = await import(`${dist}gateway/api/endpoint/refusals.js`);
/** @type {typeof import("../gateway/config.js")} */
const { gatewaySettings } = await import(`${dist}gateway/config.js`);
/** @type {typeof import("../gateway/doors/jobs/config.js")} */
const { jobsSettings } = await import(`${dist}gateway/doors/jobs/config.js`);
/** @type {typeof import("../shared/errors.js")} */
const { errorKinds } = await import(`${dist}shared/errors.js`);
const { grpcStatusOf } = await import(`${dist}shared/grpc-status.js`);
/** @type {typeof import("../shared/metrics/families.js")} */
const { sections } = await import(`${dist}shared/metrics/families.js`);
/** @type {typeof import("../shared/metrics/settings.js")} */
const { processSettings } = await import(`${dist}shared/metrics/settings.js`);
/** @type {typeof import("../worker/config.js")} */
const { workerSettings } = await import(`${dist}worker/config.js`);
/** @type {typeof import("../worker/models/validate/verdicts.js")} */
const judged = await import(`${dist}worker/models/validate/verdicts.js`);

const root = join(import.meta.dirname, "..");
/** The folder of the pages: a test checks copies of them. */
const place = process.argv.slice(2).find((one) => one !== "--check") ?? root;

/**
 * One row for each setting of a schema.
 *
 * @param {import("zod").ZodObject} schema
 * @param {string} who the processes that read the settings
 * @param {object} [skip] settings that already have a row
 */
function rows(schema, who, skip = {}) {
  return Object.entries(schema.shape)
    .filter(([name]) => !(name in skip))
    .map(([name, setting]) => {
      const value = safeParse(setting, undefined).data;
      const shown = value === undefined || value === "" ? "" : `\`${[value].flat().join(":")}\``;
      return `| \`${name}\` | ${who} | ${shown} | ${globalRegistry.get(setting)?.description} |`;
    });
}

const pages = {
  "docs/settings.md": {
    settings: [
      "| variable | read by | default | meaning |",
      "| --- | --- | --- | --- |",
      ...rows(processSettings, "both"),
      ...rows(gatewaySettings, "gateway", processSettings.shape),
      ...rows(jobsSettings, "jobs", gatewaySettings.shape),
      ...rows(workerSettings, "worker", processSettings.shape),
    ].join("\n"),
  },
  "docs/configuration.md": {
    fields: fieldTable(judged.verdicts),
    parameters: parameterTable(judged.parameterVerdicts),
    generator: fieldTable(judged.generatorVerdicts),
  },
  "docs/metrics.md": { metrics: metricTables(sections) },
  "docs/errors.md": { errors: codeTable(root, errorKinds, grpcStatusOf), texts: textTable(errorKinds) },
  "docs/api.md": { refusals: refusalList(refusals), endpoints: endpointSections(groups, refusals) },
  "ARCHITECTURE.md": {
    folders: `\`\`\`mermaid\n${drawFolders(root)}\n\`\`\``,
  },
  "test/README.md": { files: testTable(root) },
};

/** The page without the formatter's padding of tables and its breaks of lines. */
const narrow = (/** @type {string} */ text) => text.replaceAll(/\s+|-{3,}/g, " ");

for (const [name, parts] of Object.entries(pages)) {
  const page = join(place, name);
  const before = readFileSync(page, "utf8");
  let after = before;
  for (const [part, text] of Object.entries(parts)) {
    const marks = new RegExp(`<!-- ${part} -->[^]*<!-- /${part} -->`);
    if (!marks.test(after)) throw new Error(`${name} has no place for ${part}`);
    after = after.replace(marks, () => `<!-- ${part} -->\n\n${text}\n\n<!-- /${part} -->`);
  }
  if (!process.argv.includes("--check")) {
    writeFileSync(page, after);
  } else if (narrow(before) !== narrow(after)) {
    console.error(`The parts of ${name} that are made from the code are not current: run \`npm run docs\``);
    process.exitCode = 1;
  }
}
