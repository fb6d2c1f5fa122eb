/**
 * Loaded into a gateway or a jobs process before any other module (`--import`): moves its clock,
 * and the clock that it reads from Redis, by the ms in the file BATON_TEST_CLOCK. A test writes
 * that file while the process runs.
 */
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";

const READ_EVERY_MS = 20;
const file = process.env["BATON_TEST_CLOCK"] ?? "";
let readAt = -Infinity;
let aheadMs = 0;

function ahead() {
  if (performance.now() - readAt > READ_EVERY_MS) {
    readAt = performance.now();
    aheadMs = Number(readFileSync(file, "utf8"));
  }
  return aheadMs;
}

globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [target.now() + ahead()] : args, newTarget),
  get: (target, name) => (name === "now" ? () => target.now() + ahead() : Reflect.get(target, name)),
});

Redis.prototype.time = async function time() {
  const [seconds, micros] = /** @type {readonly unknown[]} */ (await this.call("TIME"));
  const moved = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + ahead();
  return [Math.floor(moved / 1_000), (moved % 1_000) * 1_000];
};
