/** `completion`: prints a script for a shell. */
import { Argument, type Command } from "commander";
import { completionScript, shells, type Shell } from "./completion-scripts.js";
import type { OpenSession } from "./session.js";

export function addCompletion(program: Command, open: OpenSession): void {
  program
    .command("completion")
    .description("print a script that completes verbs and options in a shell")
    .addArgument(new Argument("<shell>").choices(shells))
    .action((shell: Shell, _: object, command: Command) => {
      const { terminal } = open(command);
      const script = completionScript(shell, program);
      if (terminal.json) terminal.document(JSON.stringify({ shell, script }));
      else terminal.write(script);
    });
}
