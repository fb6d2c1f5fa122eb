/** The built files of the console, which the gateway reads once, at its start. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { UnusableError } from "#shared/exit.js";

export interface ConsoleFile {
  readonly mediaType: string;
  readonly bytes: Buffer;
}

export interface ConsoleFiles {
  readonly page: ConsoleFile;
  /** Names the page's content, for the header `ETag`. */
  readonly pageTag: string;
  /** The scripts and styles of the page, by their names, which hold a hash of the content. */
  readonly hashed: ReadonlyMap<string, ConsoleFile>;
}

/** `npm run build` writes the files there (infra/console.mjs). */
const FOLDER = fileURLToPath(new URL("../../../console/", import.meta.url));
const PAGE = "index.html";

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

/** @throws UnusableError if the build has no console */
export function readConsoleFiles(folder = FOLDER): ConsoleFiles {
  const files = new Map(namesIn(folder).map((name) => [name, readConsoleFile(`${folder}/${name}`)]));
  const page = files.get(PAGE);
  if (page === undefined) {
    throw new UnusableError(`there is no console in ${folder}: run 'npm run build', or set BATON_CONSOLE=false.`);
  }
  files.delete(PAGE);
  return { page, pageTag: createHash("sha256").update(page.bytes).digest("base64url").slice(0, 22), hashed: files };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => extname(name) in mediaTypes);
  } catch {
    return [];
  }
}

function readConsoleFile(path: string): ConsoleFile {
  return { mediaType: mediaTypes[extname(path)] ?? "", bytes: readFileSync(path) };
}
