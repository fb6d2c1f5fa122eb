/** `dead …`: requests that Baton has set aside, because each run ended its worker. */
import type { Command } from "commander";
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import { segment } from "../client/address.js";
import { jsonOf } from "../client/gateway.js";
import { onOneLine, pairs, table } from "../terminal/text.js";
import { readJob } from "./job-lines.js";
import { showJob } from "./jobs.js";
import type { OpenSession, Session } from "./session.js";

const PAGE = 100;

export function addDead(program: Command, open: OpenSession): void {
  const dead = program.command("dead").description("look at requests that were set aside, and run their jobs again");

  dead
    .command("list")
    .description("list requests that were set aside, the newest first")
    .option("--model <model>", "only those of this model")
    .action(async ({ model }: { readonly model?: string }, command: Command) => {
      const session = open(command);
      const found = await listAll(session, model);
      if (session.terminal.json) session.terminal.document(printJson({ object: "list", data: found }));
      else session.terminal.print(listLines(found), { heading: true });
    });

  dead
    .command("show")
    .description("show one of them")
    .argument("<id>")
    .action(async (id: string, _: object, command: Command) => {
      const { gateway, terminal } = open(command);
      const text = jsonOf(await gateway.get(pathOf(id)), gateway);
      if (terminal.json) terminal.document(text);
      else terminal.print(showLines(readJob(text)));
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

/** Reads all pages of the list. */
async function listAll({ gateway }: Session, model: string | undefined): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  let next: string | undefined;
  do {
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(model !== undefined && { model }),
      ...(next !== undefined && { after: next }),
    });
    const page = parseJson(
      Buffer.from(jsonOf(await gateway.get(`/v2/dead?${query.toString()}`), gateway)),
      () => false,
    );
    const { data, has_more: more, last_id: last } = isObject(page) ? page : {};
    found.push(...(Array.isArray(data) ? data : []).filter(isObject));
    next = more === true && typeof last === "string" ? last : undefined;
  } while (next !== undefined);
  return found;
}

function listLines(dead: readonly JsonObject[]): string[] {
  const rows = dead.map(({ id, model, reason, set_aside_at: at, job }) => [id, model, reason, at, job].map(shown));
  return table(["ID", "MODEL", "REASON", "SET ASIDE", "JOB"], rows);
}

function showLines(dead: JsonObject): string[] {
  const told = Object.entries(dead).filter(([name, value]) => name !== "object" && value !== null);
  return pairs(Object.fromEntries(told.map(([name, value]) => [name, shown(value)])));
}

function shown(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "-";
  return onOneLine(typeof value === "string" ? value : printJson(value));
}

function pathOf(id: string, rest = ""): string {
  return `/v2/dead/${segment(id)}${rest}`;
}
