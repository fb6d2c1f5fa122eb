/** Baton's own version, as package.json has it. */
import { createRequire } from "node:module";

const { version: declared } = createRequire(import.meta.url)("#package.json") as { version: string };

export const version: string = declared;
