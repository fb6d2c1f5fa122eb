/** The version of Baton, from package.json. */
import { createRequire } from "node:module";

export const { version } = createRequire(import.meta.url)("#package.json") as { readonly version: string };
