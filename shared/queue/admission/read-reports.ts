/** The typed wrapper of read-reports.lua: what all processes have counted. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { registryKeys } from "../keys.js";
import { partsOfPast, partsOfReports, type ReportPart } from "../pieces/report.js";

export interface Reports {
  /** Of processes that live, or that have gone and may come back. */
  readonly reports: readonly ReportPart[];
  /** The sums over all other processes. */
  readonly past: readonly ReportPart[];
  /** The parts of `reports` that the caller has sent. */
  readonly own: readonly ReportPart[];
}

const script = defineScript(
  new URL("./read-reports.lua", import.meta.url),
  (reply): Omit<Reports, "own"> => {
    const [reports, past] = list(reply);
    return { reports: partsOfReports(list(reports).map(text)), past: partsOfPast(list(past).map(text)) };
  },
  { keys: ["reports", "past"], args: [], readsOnly: true },
);

/**
 * @param own the name of the caller, if it knows newer numbers of its own
 * @throws the client's error if Redis does not answer
 */
export async function readReports(redis: RedisClient, own?: string): Promise<Reports> {
  const read = await script(redis, registryKeys, {});
  return { ...read, own: read.reports.filter(({ worker }) => worker === own) };
}
