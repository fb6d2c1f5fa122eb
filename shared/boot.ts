/** Names this start of a process: one that starts again must never pass as its former self. */
import { randomBytes } from "node:crypto";

/** 12 hexadecimal digits, at the end of a worker's name and in the checkpoints that it makes. */
export const boot = randomBytes(6).toString("hex");
