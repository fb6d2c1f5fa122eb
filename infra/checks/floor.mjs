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
const TRANSPORT = /\bfrom "(hono(?:\/[^"]*)?|@hono\/[^"]*|node:https?|ws|[^"]*\/http\/[^"]*)"/;
/** Adds the declared endpoints. */
const ADDS_ENDPOINTS = "gateway/api/add-endpoints.ts";

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkFloor(root, files) {
  const below = new Set(order.slice(0, order.indexOf(FLOOR) + 1).filter((folder) => folder.startsWith("gateway/")));
  return files
    .filter((path) => path.startsWith("gateway/") && isScript(path) && !isTest(path))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const transport = below.has(folderOf(path)) ? TRANSPORT.exec(text)?.[1] : undefined;
      const added = path === ADDS_ENDPOINTS ? undefined : /\brouter\.add\(/.exec(text)?.[0];
      return [
        ...(transport === undefined ? [] : [`${path} imports ${transport}, but ${FLOOR} and below know no transport`]),
        ...(added === undefined ? [] : [`${path}: adds a path that no endpoint declares`]),
      ];
    });
}
