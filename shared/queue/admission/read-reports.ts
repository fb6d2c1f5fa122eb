/** The typed wrapper of read-reports.lua: what all workers have counted. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { registryKeys } from "../keys.js";
import { parsePart, type ReportPart } from "../pieces/report.js";

const script = defineScript(
  new URL("./read-reports.lua", import.meta.url),
  (reply): ReportPart[] =>
    list(reply).flatMap((values) => list(values).flatMap((value) => parsePart(text(value)) ?? [])),
  { keys: ["reports", "past"], args: [], readsOnly: true },
);

/**
 * The parts of all workers, also of workers that are gone.
 * @throws the client's error if Redis does not answer
 */
export function readReports(redis: RedisClient): Promise<ReportPart[]> {
  return script(redis, registryKeys, {});
}
