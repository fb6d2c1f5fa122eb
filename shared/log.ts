/** The log of a process: a JSON line for each event, on standard output. */
import { pino, type Logger } from "pino";

export function createLog(level: string, name: string): Logger {
  return pino({ level, base: { name, pid: process.pid } });
}
