/** The log of a process: one JSON line per event on standard output. */
import { pino, type Logger } from "pino";

export function createLog(level: string, name: string): Logger {
  return pino({ level, base: { name, pid: process.pid } });
}
