/** `fleet`: shows workers, models and queues, once or every second. */
import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import type { Fleet, OwnFleet } from "../../gateway/answers.js";
import { jsonOf } from "../client/gateway.js";
import { onOneLine, table } from "../terminal/text.js";
import type { OpenSession } from "./session.js";

const WATCH_PAUSE_MS = 1_000;

export function addFleet(program: Command, open: OpenSession): void {
  program
    .command("fleet")
    .description("show the workers, the models that they serve, and what is queued")
    .option("--watch", "show it anew every second; with --json, each on a line")
    .action(async ({ watch = false }: { readonly watch?: boolean }, command: Command) => {
      const { gateway, terminal, signal } = open(command);
      const show = async (known: boolean) => {
        const fleet = jsonOf(await gateway.get("/v2/fleet", { known }), gateway);
        if (terminal.json) return terminal.document(fleet);
        if (watch) terminal.clear();
        for (const lines of linesOf(JSON.parse(fleet) as Fleet | OwnFleet)) terminal.print(lines, { heading: true });
      };
      await show(false);
      if (!watch) return;
      for (;;) {
        await pause(WATCH_PAUSE_MS, undefined, { signal });
        await show(true);
      }
    });
}

/** A key without the right `operator` gets the names of its models only. */
function linesOf(fleet: Fleet | OwnFleet): string[][] {
  if ("workers" in fleet) return fleetLines(fleet);
  const rows = fleet.models.map(({ name, version }) => [name, version]);
  return [table(["MODEL", "VERSION"], rows)];
}

/** @returns a table of workers, a table of models, and a table of failed models if there are any */
export function fleetLines({ workers, models }: Pick<Fleet, "workers" | "models">): string[][] {
  const workerRows = workers.map(({ name, host, pid, started_at: since, models: served }) => [
    onOneLine(name),
    onOneLine(host),
    String(pid),
    since,
    served.map((model) => model.name).join(" "),
  ]);
  const modelRows = models.map(({ name, version, workers: by, queued, running, live_sequences: live, set_aside }) => [
    name,
    version,
    ...[by, queued, running, live ?? "-", set_aside].map(String),
  ]);
  const failed = workers.flatMap((worker) =>
    worker.failed.map(({ name, version = "-", reason }) => [worker.name, name, version, onOneLine(reason)]),
  );
  return [
    table(["WORKER", "HOST", "PID", "SINCE", "MODELS"], workerRows),
    table(["MODEL", "VERSION", "WORKERS", "QUEUED", "RUNNING", "SEQUENCES", "SET ASIDE"], modelRows),
    ...(failed.length > 0 ? [table(["WORKER", "FAILED MODEL", "VERSION", "REASON"], failed)] : []),
  ];
}
