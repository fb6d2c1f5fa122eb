/**
 * The classes of ioredis, required instead of imported: Node scans an imported CommonJS package for
 * the names of its exports, and V8 optimises the scanner meanwhile. For ioredis that is half of the
 * loading time, 100 ms of the processor; for other packages it is little. Joined programs contain
 * the package (infra/bundle.mjs). A worker's supervisor loads it after its worker has died.
 */
import { createRequire } from "node:module";
import type * as ioredis from "ioredis";

export const { Redis, Cluster, Command, AbstractConnector } = createRequire(import.meta.url)(
  "ioredis",
) as typeof ioredis;
