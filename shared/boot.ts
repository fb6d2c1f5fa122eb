/**
 * A name for this start of the process, so that after a restart nothing takes the process for its
 * predecessor.
 */
import { randomBytes } from "node:crypto";

/**
 * 12 hexadecimal digits. The end of a worker's name, and part of the worker's checkpoint versions.
 */
export const boot = randomBytes(6).toString("hex");
