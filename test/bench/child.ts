/** Runs one measurement in a process of its own: a job goes in as JSON, `measuring` marks the end of the warm-up, a result comes out. */
import { fork } from "node:child_process";

export type Report<Result> = { readonly kind: "measuring" } | { readonly kind: "result"; readonly result: Result };

/** No measurement takes as long; one that does hangs. */
const LIMIT_MS = 60_000;

const MEASURING: Report<never> = { kind: "measuring" };

/** @param onMeasuring called when the warm-up is over. @param onDone called the moment the result is there. */
export function runChild<Job, Result>(
  module: URL,
  job: Job,
  onMeasuring: () => void = () => undefined,
  onDone: () => void = () => undefined,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = fork(module, [JSON.stringify(job)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    child.on("message", (report: Report<Result>) => {
      if (report.kind === "measuring") return onMeasuring();
      onDone();
      return resolve(report.result);
    });
    const limit = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    child.once("exit", () => clearTimeout(limit));
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      reject(new Error(`${module.pathname} exited (${code ?? signal}) without a result`)),
    );
  });
}

/** The child's side. It exits when the job is done, whatever connections are open still. */
export async function serveJob<Job, Result>(run: (job: Job, measuring: () => void) => Promise<Result>): Promise<void> {
  const send = process.send?.bind(process) as ((report: Report<Result>, done?: () => void) => void) | undefined;
  if (send === undefined) throw new Error("this program is started by the benchmark");
  process.once("disconnect", () => process.exit(1)); // the benchmark is gone
  const result = await run(JSON.parse(process.argv[2] ?? "") as Job, () => send(MEASURING));
  send({ kind: "result", result }, () => process.exit(0));
}
