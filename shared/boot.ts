/** Names this start of a process: one that starts again must never pass as its former self. */
import { randomBytes } from "node:crypto";

/** 12 hexadecimal digits. A worker's name ends with it, and the checkpoints that it makes hold it. */
export const boot = randomBytes(6).toString("hex");
