/** What every verb is given: a gateway to ask, a terminal to write to, and when to stop. */
import type { Command } from "commander";
import type { Gateway } from "../client/gateway.js";
import type { Terminal } from "../terminal/terminal.js";

export interface Session {
  readonly gateway: Gateway;
  readonly terminal: Terminal;
  /** Aborted when the command is to end: at Ctrl-C, or when nobody reads its results any more. */
  readonly signal: AbortSignal;
}

/** Begins a session with the options that a command was given, its own and the general ones. */
export type OpenSession = (command: Command) => Session;
