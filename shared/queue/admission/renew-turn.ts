/** The typed wrapper of renew-turn.lua: renews the turn to observe, and reads the reports. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { registryKeys } from "../keys.js";
import { partsOfReports, type ReportPart } from "../pieces/report.js";
import { TURN_MS } from "./history.js";

const script = defineScript(
  new URL("./renew-turn.lua", import.meta.url),
  (reply): readonly ReportPart[] | undefined => (reply === null ? undefined : partsOfReports(list(reply).map(text))),
  { keys: ["observer"], args: ["gateway", "forMs"] },
);

/**
 * @returns the reports of processes that live, or that have gone and may come back; undefined if
 *   this gateway does not have the turn
 * @throws the client's error if Redis does not answer
 */
export function renewTurn(redis: RedisClient, gateway: string): Promise<readonly ReportPart[] | undefined> {
  return script(redis, registryKeys, { gateway, forMs: TURN_MS });
}
