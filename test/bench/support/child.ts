/**
 * Runs a measurement in a process of its own. A job goes in as JSON, and a result comes out.
 * `measuring` marks the end of the warm-up, and `measured` the end of the measurement.
 */
import { fork } from "node:child_process";

export type Report<Result> =
  { readonly kind: "measuring" | "measured" } | { readonly kind: "result"; readonly result: Result };

/** No measurement takes as long, so a process that does hangs. */
const LIMIT_MS = 120_000;

/**
 * @param onMeasuring called when the warm-up is over
 * @param onMeasured called when the measurement is over, at the latest with the result
 */
export function runChild<Job, Result>(
  module: URL,
  job: Job,
  onMeasuring: () => void = () => undefined,
  onMeasured: () => void = () => undefined,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = fork(module, [JSON.stringify(job)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    let measured = false;
    const nowMeasured = () => {
      if (!measured) onMeasured();
      measured = true;
    };
    child.on("message", (report: Report<Result>) => {
      if (report.kind === "measuring") return onMeasuring();
      nowMeasured();
      if (report.kind === "result") resolve(report.result);
    });
    const limit = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    child.once("exit", () => clearTimeout(limit));
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      reject(new Error(`${module.pathname} exited (${code ?? signal}) without a result`)),
    );
  });
}

/** The child's side, which exits when the job is done, even with open connections. */
export async function serveJob<Job, Result>(
  run: (job: Job, measuring: () => void, measured: () => void) => Promise<Result>,
): Promise<void> {
  const send = process.send?.bind(process) as ((report: Report<Result>, done?: () => void) => void) | undefined;
  if (send === undefined) throw new Error("this program is started by the benchmark");
  process.once("disconnect", () => process.exit(1)); // the benchmark has ended
  const mark = (kind: "measuring" | "measured") => () => send({ kind });
  const job = JSON.parse(process.argv[2] ?? "") as Job;
  const result = await run(job, mark("measuring"), mark("measured"));
  send({ kind: "result", result }, () => process.exit(0));
}
