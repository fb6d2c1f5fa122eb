/**
 * The service floor knows no transport, and every path of the HTTP API is declared: gateway/service
 * and the folders below it import neither HTTP nor the framework, and only gateway/api adds paths
 * to the router.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { folderOf, isScript, isTest } from "./files.mjs";
import { order } from "./order.mjs";

const FLOOR = "gateway/service";
const TRANSPORT =
  /\b(?:from|import|import\() ?"(hono(?:\/[^"]*)?|@(?:hono|grpc)\/[^"]*|node:http[s2]?|ws|light-my-request|[^"]*\/http\/[^"]*)"/;
const ADDS_PATH = /\b(?:router\.add|app\.(?:get|post|put|patch|delete|all|on|route))\(/;
/** The router, the file that adds the declared endpoints, and the operators' board. */
const MAY_ADD = ["gateway/http/router.ts", "gateway/api/endpoint/add-endpoints.ts", "gateway/doors/jobs/board.ts"];

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkFloor(root, files) {
  const below = new Set(order.slice(0, order.indexOf(FLOOR) + 1));
  return files
    .filter((path) => /^(?:gateway|shared)\//.test(path) && isScript(path) && !isTest(path))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const transport = below.has(folderOf(path)) ? TRANSPORT.exec(text)?.[1] : undefined;
      const isAdded = !MAY_ADD.includes(path) && ADDS_PATH.test(text);
      return [
        ...(transport === undefined ? [] : [`${path} imports ${transport}, but ${FLOOR} and below know no transport`]),
        ...(isAdded ? [`${path}: adds a path that no endpoint declares`] : []),
      ];
    });
}
