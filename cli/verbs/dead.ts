/** `dead …`: requests that Baton has set aside, because each run ended its worker. */
import type { Command } from "commander";
import { printJson } from "#shared/json/print.js";
import type { DeadRequest } from "../../gateway/answers.js";
import { segment } from "../client/address.js";
import { readAnswer, readPages } from "../client/answers.js";
import { jsonOf } from "../client/gateway.js";
import { cells, memberTexts, pairs, table } from "../terminal/text.js";
import { showJob } from "./jobs.js";
import type { OpenSession } from "./session.js";

const PAGE = 100;

export function addDead(program: Command, open: OpenSession): void {
  const dead = program.command("dead").description("look at requests that were set aside, and run their jobs again");

  dead
    .command("list")
    .description("list requests that were set aside, the newest first")
    .option("--model <model>", "only those of this model")
    .action(async ({ model }: { readonly model?: string }, command: Command) => {
      const { gateway, terminal } = open(command);
      const query = new URLSearchParams({ limit: String(PAGE), ...(model !== undefined && { model }) });
      const found = await readPages<DeadRequest>(gateway, "/v2/dead", query);
      if (terminal.json) terminal.document(printJson({ object: "list", data: found }));
      else terminal.print(listLines(found), { heading: true });
    });

  dead
    .command("show")
    .description("show one of them")
    .argument("<id>")
    .action(async (id: string, _: object, command: Command) => {
      const { gateway, terminal } = open(command);
      const text = jsonOf(await gateway.get(pathOf(id)), gateway);
      if (terminal.json) terminal.document(text);
      else terminal.print(pairs(memberTexts(readAnswer<DeadRequest>(text), ["object"])));
    });

  dead
    .command("retry")
    .description("run the job again that one of them ran, and forget it")
    .argument("<id>")
    .action(async (id: string, _: object, command: Command) => {
      const session = open(command);
      const answer = await session.gateway.change(pathOf(id, "/retry"), { method: "POST" });
      await showJob(session, jsonOf(answer, session.gateway));
    });
}

function listLines(dead: readonly Partial<DeadRequest>[]): string[] {
  const rows = dead.map((one) => cells(one, ["id", "model", "reason", "set_aside_at", "job"]));
  return table(["ID", "MODEL", "REASON", "SET ASIDE", "JOB"], rows);
}

function pathOf(id: string, rest = ""): string {
  return `/v2/dead/${segment(id)}${rest}`;
}
