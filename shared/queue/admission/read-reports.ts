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
}

const script = defineScript(
  new URL("./read-reports.lua", import.meta.url),
  (reply): Reports => {
    const [reports, past] = list(reply);
    return { reports: partsOfReports(list(reports).map(text)), past: partsOfPast(list(past).map(text)) };
  },
  { keys: ["reports", "past"], args: [], readsOnly: true },
);

/** @throws the client's error if Redis does not answer */
export function readReports(redis: RedisClient): Promise<Reports> {
  return script(redis, registryKeys, {});
}
