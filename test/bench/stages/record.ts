/**
 * Loaded into a process of the fleet with `--import`, writes the times at which requests pass each
 * stage to the folder STAGES_TO.
 */
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { STAGES_CHANNEL, type Passed } from "#shared/stages.js";
import type { Recorded } from "./read.js";

/** Time between two writes, in ms. */
export const WRITE_EVERY_MS = 200;

const folder = process.env["STAGES_TO"];
if (folder !== undefined && isMainThread) recordTo(folder);

function recordTo(to: string): void {
  mkdirSync(to, { recursive: true });
  const file = join(to, `${process.pid}.jsonl`);
  let text = "";
  const write = (): void => {
    if (text !== "") appendFileSync(file, text);
    text = "";
  };
  subscribe(STAGES_CHANNEL, (passed) => {
    const at = performance.timeOrigin + performance.now();
    text += `${JSON.stringify({ ...(passed as Passed), at } satisfies Recorded)}\n`;
  });
  setInterval(write, WRITE_EVERY_MS).unref();
  process.once("exit", write);
}
