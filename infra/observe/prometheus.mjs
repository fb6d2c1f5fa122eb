/**
 * Runs a real Prometheus beside a fleet, with the configuration of this folder: it finds the
 * processes by the gateway, as it does in Compose.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Whether Prometheus is installed. */
export function hasPrometheus() {
  return spawnSync("prometheus", ["--version"]).error === undefined;
}

/**
 * The configuration of this folder, for a fleet without Compose.
 *
 * @param {string} gateway its URL
 * @param {string | undefined} tokenFile undefined if the metrics need no token
 */
function configFor(gateway, tokenFile) {
  const text = readFileSync(join(import.meta.dirname, "prometheus.yml"), "utf8")
    .replaceAll("/etc/prometheus/", `${import.meta.dirname}/`)
    .replace("http://gateway:8000", gateway);
  if (tokenFile !== undefined) return text.replaceAll("/keys/metrics/metrics.token", tokenFile);
  return text.replaceAll(/^ +authorization:\n +credentials_file: .*\n/gm, "");
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/**
 * @typedef {{ labels: Record<string, string>, health: string, lastError: string }} Target
 */

/**
 * @param {{ gateway: string, tokenFile?: string | undefined }} terms
 */
export async function startPrometheus({ gateway, tokenFile }) {
  const folder = mkdtempSync(join(tmpdir(), "baton-prometheus-"));
  const config = join(folder, "prometheus.yml");
  writeFileSync(config, configFor(gateway, tokenFile));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const program = spawn("prometheus", [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  let log = "";
  program.stderr.setEncoding("utf8").on("data", (text) => (log += text));
  const ended = new Promise((resolve) => program.once("close", resolve));

  /** @param {string} path */
  const ask = async (path) => {
    const answer = await fetch(url + path);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.text();
  };
  /**
   * @param {string} expr
   * @returns {Promise<{ metric: Record<string, string>, value: number }[]>}
   */
  const query = async (expr) => {
    const { data } = JSON.parse(await ask(`/api/v1/query?query=${encodeURIComponent(expr)}`));
    /** @type {{ metric: Record<string, string>, value: [number, string] }[]} */
    const found = data.result;
    return found.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  };
  return {
    query,
    /** Whether Prometheus answers. */
    isReady: () =>
      ask("/-/ready").then(
        () => true,
        () => false,
      ),
    /** @returns {Promise<Target[]>} the processes that the gateway names now */
    targets: async () => JSON.parse(await ask("/api/v1/targets?state=active")).data.activeTargets,
    /** Samples that Prometheus has refused so far: of an older time, or a second one of a time. */
    refusedSamples: async () => {
      const own = await ask("/metrics");
      const names = ["out_of_order", "duplicate_timestamp", "out_of_bounds"];
      return names.reduce((sum, name) => {
        const [, count = "0"] =
          new RegExp(`^prometheus_target_scrapes_sample_${name}_total (\\S+)$`, "m").exec(own) ?? [];
        return sum + Number(count);
      }, 0);
    },
    /** Warnings and errors in its log. */
    complaints: () => log.split("\n").filter((line) => /level=(?:warn|error)/.test(line)),
    stop: async () => {
      program.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
