/** What a process is, as it tells others: which start of which version. */
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";

/**
 * A name for this start of the process, so that after a restart nothing takes the process for its
 * predecessor: 12 hexadecimal digits. The end of a worker's name, and part of the worker's
 * checkpoint versions.
 */
export const boot = randomBytes(6).toString("hex");

/** The version of Baton. */
export const { version } = createRequire(import.meta.url)("#package.json") as { readonly version: string };
