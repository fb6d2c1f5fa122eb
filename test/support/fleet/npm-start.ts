/** `npm start`, with a home, ports and one worker of a test's own. */
import { join } from "node:path";
import { freePort } from "../brokers/port.js";
import { RunningProcess } from "../brokers/process.js";
import { root } from "./root.js";

/**
 * @param folder for the home, `home`, and the log
 * @param repository of models
 * @param env other settings, and those that the test wants otherwise
 */
export async function npmStart(
  folder: string,
  repository: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningProcess & { readonly url: string }> {
  const ports = await Promise.all(Array.from({ length: 4 }, freePort));
  const [http, redis, nats, webSockets] = ports.map(String) as [string, string, string, string];
  const start = new RunningProcess({
    name: "npm start",
    command: "npm",
    args: ["start"],
    cwd: root,
    env: {
      BATON_HOME: join(folder, "home"),
      BATON_MODEL_REPOSITORY: repository,
      BATON_HTTP_PORT: http,
      BATON_REDIS_PORT: redis,
      BATON_NATS_PORT: nats,
      BATON_NATS_WS_PORT: webSockets,
      BATON_WORKERS: "1",
      BATON_METRICS_PORT: "0",
      ...env,
    },
    logFile: join(folder, "start.log"),
  });
  return Object.assign(start, { url: `http://127.0.0.1:${http}` });
}

/** Resolves when the fleet is up and the banner has been printed. @returns all lines so far */
export async function bannerOf(start: RunningProcess): Promise<string> {
  await start.waitForLine("the banner's end", ({ text }) => text.includes("Ctrl-C drains"), 110_000);
  return textOf(start);
}

/** @returns all lines so far */
export function textOf(start: RunningProcess): string {
  return start.lines.map(({ text }) => text).join("\n");
}
