/** `schedules …`: submit the same job repeatedly, at times of day or at an interval. */
import { Option, type Command } from "commander";
import type { IsTensorData } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import type { Schedule } from "../../gateway/answers.js";
import { segment } from "../client/address.js";
import { readAnswer, readPages, without } from "../client/answers.js";
import { jsonOf } from "../client/gateway.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { cells, memberTexts, onOneLine, pairs, shown, table } from "../terminal/text.js";
import { duration } from "./duration.js";
import { jobBody, kinds, label, type JobBodyOptions } from "./jobs.js";
import { integer, readInput } from "./options.js";
import type { OpenSession, Session } from "./session.js";

type CreateOptions = Pick<JobBodyOptions, "priority" | "attempts" | "label"> & {
  readonly [kind in (typeof kinds)[number]]?: string;
} & {
  readonly cron?: string;
  readonly timezone?: string;
  readonly every?: number;
  readonly startAt?: string;
  readonly endAt?: string;
  readonly limit?: number;
  readonly deadline?: number;
};

const PAGE = 100;

export function addSchedules(program: Command, open: OpenSession): void {
  const schedules = program.command("schedules").description("submit the same job again and again");

  const create = schedules
    .command("create")
    .description("make a schedule, and print its id; the body is the JSON of a file, - reads standard input")
    .argument("<model>");
  for (const kind of kinds) {
    const others = kinds.filter((other) => other !== kind);
    create.addOption(new Option(`--${kind} <file>`, `the body of a request to ${kind}`).conflicts([...others]));
  }
  create
    .addOption(new Option("--cron <expression>", "five fields, such as '30 9 * * 1-5'").conflicts("every"))
    .addOption(new Option("--timezone <zone>", "of the expression, such as Europe/Berlin; else UTC").conflicts("every"))
    .option("--every <duration>", "in this interval, such as 5m", duration)
    .option("--start-at <time>", "not before this time, such as 2026-12-01T09:00:00Z")
    .option("--end-at <time>", "not after this time")
    .option("--limit <n>", "most jobs that it makes", integer)
    .option("--priority <n>", "of each job: from 1, which goes first, to 9", integer)
    .option("--deadline <duration>", "do not run a job that has waited for longer", duration)
    .option("--attempts <n>", "how often each job may fail for the fleet's fault", integer)
    .option("--label <name=value>", "of each job; may be given again", label)
    .action(async (model: string, options: CreateOptions, command: Command) => {
      await createSchedule(open(command), model, options);
    });

  schedules
    .command("list")
    .description("list schedules without their jobs, the newest first")
    .action(async (_: object, command: Command) => {
      const { gateway, terminal } = open(command);
      const query = new URLSearchParams({ limit: String(PAGE) });
      const found = (await readPages<Schedule>(gateway, "/v2/schedules", query, isTensorData)).map((one) =>
        without(one, "job"),
      );
      if (terminal.json) terminal.document(printJson({ object: "list", data: found }));
      else terminal.print(listLines(found), { heading: true });
    });

  const onSchedule = (name: string, description: string, work: (session: Session, path: string) => Promise<void>) =>
    schedules
      .command(name)
      .description(description)
      .argument("<id>")
      .action((id: string, _: object, command: Command) => work(open(command), `/v2/schedules/${segment(id)}`));

  onSchedule("show", "show one schedule, and when it is due", async (session, path) => {
    show(session, jsonOf(await session.gateway.get(path), session.gateway));
  });
  onSchedule("pause", "make no jobs until it is resumed", async (session, path) => {
    const answer = await session.gateway.change(`${path}/pause`, { method: "POST" });
    show(session, jsonOf(answer, session.gateway));
  });
  onSchedule("resume", "go on; what was missed in the pause is not made up for", async (session, path) => {
    const answer = await session.gateway.change(`${path}/resume`, { method: "POST" });
    show(session, jsonOf(answer, session.gateway));
  });
  onSchedule("remove", "remove one schedule; its jobs stay", async ({ gateway, terminal }, path) => {
    await gateway.change(path, { method: "DELETE" });
    if (terminal.json) terminal.document(printJson({ removed: true }));
  });
}

async function createSchedule({ gateway, terminal, signal }: Session, model: string, options: CreateOptions) {
  const kind = kinds.find((one) => options[one] !== undefined);
  if (kind === undefined) {
    throw new Failure(exitCodes.usage, "give the body of its jobs: --infer FILE, --generate FILE or --chat FILE");
  }
  if (options.cron === undefined && options.every === undefined) {
    throw new Failure(exitCodes.usage, "say when: --cron EXPRESSION or --every DURATION");
  }
  const file = options[kind] ?? "";
  const body = scheduleBody(kind, file, await readInput(file, signal), options);
  const headers = { "content-type": "application/json" };
  const answer = await gateway.change(`/v2/models/${segment(model)}/schedules`, { method: "POST", headers, body });
  const view = jsonOf(answer, gateway);
  if (terminal.json) terminal.document(view);
  else terminal.print([shown(readAnswer<Schedule>(view, isTensorData).id)]);
}

/**
 * Copies the file's text unchanged into the body, so that no number loses digits.
 * @throws Failure for a file that is no JSON object
 */
export function scheduleBody(kind: string, file: string, content: Buffer, options: CreateOptions): string {
  const { cron, timezone, every, startAt, endAt, limit, priority, deadline, attempts, label: labels } = options;
  const job = jobBody(kind, file, content, {
    ...(priority !== undefined && { priority }),
    ...(deadline !== undefined && { deadline }),
    ...(attempts !== undefined && { attempts }),
    ...(labels !== undefined && { label: labels }),
  });
  const when = printJson({ cron, timezone, every, start_at: startAt, end_at: endAt, limit });
  return `${when.slice(0, -1)},"job":${job}}`;
}

/** Whether a member belongs to the schedule's job, which the parser checks but does not build. */
const isTensorData: IsTensorData = (name, depth) => name === "data" && depth > 2;

function show({ terminal }: Session, text: string): void {
  if (terminal.json) terminal.document(text);
  else terminal.print(scheduleLines(readAnswer(text, isTensorData)));
}

/** A line for each member that has a value. */
export function scheduleLines(schedule: Partial<Schedule>): string[] {
  const { next_runs: coming = [], last_error: error } = schedule;
  return pairs({
    ...memberTexts(schedule, ["object", "job", "next_runs", "last_error"]),
    ...(coming.length > 0 && { next_runs: shown(coming) }),
    ...(error && { last_error: onOneLine(`${error.message} (${error.code}, at ${error.at})`) }),
  });
}

export function listLines(schedules: readonly Partial<Schedule>[]): string[] {
  const rows = schedules.map((one) => [
    ...cells(one, ["id", "model", "state"]),
    typeof one.cron === "string" ? onOneLine(`${one.cron} ${shown(one.timezone)}`) : `${shown(one.every)} ms`,
    ...cells(one, ["next_run_at", "runs"]),
  ]);
  return table(["SCHEDULE", "MODEL", "STATE", "TIMES", "NEXT", "RUNS"], rows);
}
