/** The pages for users, README.md and docs/, and their blocks of code. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../support/fleet/root.js";

const files = [
  "README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
].toSorted();

export const pages = files.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

/** The blocks of a page, in its order. */
function allBlocks(path: string): readonly { readonly language: string; readonly block: string }[] {
  const text = pages.find((page) => page.path === path)?.text ?? "";
  const found = text.matchAll(/^```(.*)\n([^]*?)^```$/gm);
  return [...found].map(([, language = "", block = ""]) => ({ language, block }));
}

/** @returns the texts of a page's blocks in a language, in the order of the page */
export function blocksOf(language: string, path: string): readonly string[] {
  return allBlocks(path)
    .filter((found) => found.language === language)
    .map(({ block }) => block);
}
