/** Faults that are put in by hand. */
import type { Fault } from "./run.js";

export const faults: Readonly<Record<string, Fault>> = {};
