/** `models`: the models that the fleet serves, and why others failed to load. */
import type { Command } from "commander";
import type { Repository } from "../../gateway/answers.js";
import { jsonOf } from "../client/gateway.js";
import { onOneLine, table } from "../terminal/text.js";
import type { OpenSession } from "./session.js";

export function addModels(program: Command, open: OpenSession): void {
  program
    .command("models")
    .description("list the models that are served, and those that could not be loaded")
    .action(async (_: object, command: Command) => {
      const { gateway, terminal } = open(command);
      const index = jsonOf(await gateway.change("/v2/repository/index", { method: "POST" }), gateway);
      if (terminal.json) terminal.document(index);
      else terminal.print(modelLines(JSON.parse(index) as Repository), { heading: true });
    });
}

export function modelLines(models: Repository): string[] {
  const rows = models.map(({ name, version = "-", state = "-", reason = "" }) => [
    name,
    version,
    state,
    onOneLine(reason),
  ]);
  return table(["MODEL", "VERSION", "STATE", "REASON"], rows);
}
