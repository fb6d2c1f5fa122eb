/** The size of the console's files, on the wire and in the image. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { root } from "../../support/fleet/root.js";
import { atMost, type Figure } from "./figures.js";

const KB = 1_024;
const MOST_ZIPPED_KB = 120;
const MOST_RAW_KB = 400;

export function checkFiles(): readonly Figure[] {
  const folder = join(root, "dist/console");
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0) / KB;
  return [
    atMost("files, with gzip", sum(files.map((file) => gzipSync(file).length)), MOST_ZIPPED_KB, "KB"),
    atMost("files, in the image", sum(files.map((file) => file.length)), MOST_RAW_KB, "KB"),
  ];
}
