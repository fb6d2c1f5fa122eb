/**
 * `npm run observe:check [gateway]`: has Prometheus' promtool judge the files of this folder, with
 * the tests of the alerts, and the page of metrics of each process of a running fleet. Then a real
 * Prometheus scrapes the fleet for a minute, while workers may come and go. Prints every complaint,
 * and fails if there is one. The gateway is `http://127.0.0.1:8000` by default, and the
 * token of metrics comes from the file that `npm start` makes, if there is one.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { hasPrometheus, startPrometheus } from "./prometheus.mjs";

const SCRAPE_MS = 60_000;

/**
 * Complaints that are no faults. Triton's dashboards and clients need Triton's names. The delays of
 * the event loop are a gauge, because a summary would need their sum.
 */
const allowed = [
  /^nv_\S+ counter metrics should have "_total" suffix$/,
  /^nv_\S+ non-histogram and non-summary metrics should not have "_count" suffix$/,
  /^nv_\S+ metric names should not contain abbreviated units$/,
  /^nv_\S+ metric name should not include type 'histogram'$/,
  /^baton_event_loop_delay_seconds non-summary metrics should not have "quantile" label$/,
];
/** prom-client names the figures of Node. */
const ofNode = /^(?:nodejs|process)_/;

/** Whether promtool is installed. */
export function hasPromtool() {
  return spawnSync("promtool", ["--version"]).error === undefined;
}

/**
 * Runs promtool in this folder, beside everything else: a process that waits for it in the system
 * call would miss the end of its idle connections.
 *
 * @param {string[]} args
 * @param {string} [input]
 * @returns {Promise<{ status: number | null, said: string }>}
 */
function promtool(args, input = "") {
  return new Promise((resolve, reject) => {
    const program = spawn("promtool", args, { cwd: import.meta.dirname });
    let said = "";
    for (const stream of [program.stdout, program.stderr])
      stream.setEncoding("utf8").on("data", (text) => (said += text));
    program.once("error", reject).once("close", (status) => resolve({ status, said }));
    program.stdin.end(input);
  });
}

/**
 * @param {string} page the text of a page
 * @returns {Promise<string[]>} the complaints of promtool, without those about names that others
 *   have given
 */
export async function complaintsAbout(page) {
  const { status, said } = await promtool(["check", "metrics"], page);
  const lines = said.split("\n").filter((line) => line !== "");
  const left = lines.filter((line) => !ofNode.test(line) && !allowed.some((rule) => rule.test(line)));
  // promtool ends with 3 after complaints, and with another code if it cannot read the page.
  return left.length === 0 && status !== 0 && status !== 3 ? [`promtool ended with ${status}`] : left;
}

const ofFiles = [
  ["check", "config", "--syntax-only", "prometheus.yml"],
  ["check", "rules", "rules.yml", "alerts.yml"],
  ["test", "rules", "alerts.test.yml"],
];

/** @returns {Promise<string[]>} the outputs of the judgements that find a fault */
export async function faultsOfFiles() {
  const judged = await Promise.all(ofFiles.map(async (args) => ({ args, ...(await promtool(args)) })));
  return judged.flatMap(({ args, status, said }) => (status === 0 ? [] : [`promtool ${args.join(" ")}:\n${said}`]));
}

/**
 * @param {string} gateway
 * @param {string | undefined} tokenFile
 */
async function scrape(gateway, tokenFile) {
  const prometheus = await startPrometheus({ gateway, tokenFile });
  let upAfterMs;
  try {
    while (!(await prometheus.isReady())) await pause(100);
    const since = performance.now();
    while (performance.now() - since < SCRAPE_MS) {
      await pause(250);
      if (upAfterMs !== undefined) continue;
      const targets = await prometheus.targets();
      if (targets.length > 0 && targets.every(({ health }) => health === "up")) upAfterMs = performance.now() - since;
    }
    const targets = await prometheus.targets();
    const down = targets.filter(({ health }) => health !== "up");
    const refused = await prometheus.refusedSamples();
    const said = [
      ...down.map(({ labels, lastError }) => `${labels["instance"]}: ${lastError}`),
      ...prometheus.complaints(),
    ];
    const up = upAfterMs === undefined ? "never" : `after ${(upAfterMs / 1_000).toFixed(1)} s`;
    console.log(`Prometheus, a minute: ${targets.length} targets, all up ${up}, ${refused} samples refused`);
    for (const line of said) console.log(`  ${line}`);
    if (upAfterMs === undefined || refused > 0 || said.length > 0) process.exitCode = 1;
  } finally {
    await prometheus.stop();
  }
}

async function main() {
  const faults = await faultsOfFiles();
  for (const fault of faults) console.log(fault);
  if (faults.length > 0) process.exitCode = 1;
  const [gateway = "http://127.0.0.1:8000"] = process.argv.slice(2);
  const tokenFile = join(import.meta.dirname, "../../.baton/secrets/metrics.token");
  const token = existsSync(tokenFile) ? readFileSync(tokenFile, "utf8").trim() : undefined;
  /** @type {Record<string, string>} */
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  /** @param {string} url */
  const read = async (url) => {
    const answer = await fetch(url, { headers });
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
    return answer.text();
  };
  /** @type {readonly { targets: readonly string[], labels: Record<string, string> }[]} */
  /** @param {unknown} error */
  const missing = (error) => {
    console.log(`no fleet answers at ${gateway} (${String(error)}): npm start begins one`);
    process.exitCode = 1;
    return [];
  };
  const found = await read(`${gateway}/v2/fleet/targets`).then(JSON.parse, missing);
  for (const { targets, labels } of found) {
    const complaints = await complaintsAbout(await read(`http://${targets[0]}/metrics`));
    console.log(`${labels["baton_process"]}: ${complaints.length} complaints`);
    for (const line of complaints) console.log(`  ${line}`);
    if (complaints.length > 0) process.exitCode = 1;
  }
  if (found.length > 0 && hasPrometheus()) await scrape(gateway, token === undefined ? undefined : tokenFile);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
