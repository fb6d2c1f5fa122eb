/** The gateway, the terminal and the abort signal that every verb receives. */
import type { Command } from "commander";
import type { Gateway } from "../client/gateway.js";
import type { Terminal } from "../terminal/terminal.js";

export interface Session {
  readonly gateway: Gateway;
  readonly terminal: Terminal;
  /** Aborts if the command must end: at Ctrl-C, or if the reader of the results is gone. */
  readonly signal: AbortSignal;
}

/** Opens a session from the command's own options and the general options. */
export type OpenSession = (command: Command) => Session;
