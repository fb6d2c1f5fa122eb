/**
 * The worker's supervisor: starts the worker as a child process, and a new worker after each death.
 * A native crash in a model kills the whole process with all threads. Thanks to the supervisor, a
 * new worker runs within a second, and the container does not exit. Every import of this file
 * delays the worker's start. So the supervisor loads the code for a death only at a death, and
 * reads no settings.
 */
import { fork } from "node:child_process";
import { EXIT_UNUSABLE } from "#shared/exit.js";
import { DEATHS } from "./deaths.js";
import type { CrashRelease } from "./crash-release.js";

/** `main.ts` and all its imports, in a few files (infra/bundle.mjs). */
const PROGRAM = new URL("../bundled/worker/main.js", import.meta.url);

/**
 * In ms. The pause doubles with each crash in a row, to spare the machine if no worker can live.
 */
const RESTART_MS = { first: 50, most: 1_000 };
/** A child that lived longer than this, in ms, was not part of a crash loop. */
const HEALTHY_MS = 10_000;

/**
 * Defaults, which the environment may override. CUDA counts the GPUs as nvidia-smi does, and
 * computes 32-bit floats with all bits, so that a sequence may move from a CPU to a GPU and back.
 */
const CUDA = { CUDA_DEVICE_ORDER: "PCI_BUS_ID", NVIDIA_TF32_OVERRIDE: "0" };

let pauseMs = RESTART_MS.first;
let stopping = false;
/** Deaths of workers so far, by the signal or the exit code. Each worker shows them as metrics. */
const deaths: Record<string, number> = {};

/** @param release undefined if the worker died before it sent a release: it held no entry then */
async function afterDeath(death: Readonly<Record<string, unknown>>, release: CrashRelease | undefined): Promise<void> {
  const [{ createLog }, { releaseAfterCrash }] = await Promise.all([
    import("#shared/log.js"),
    import("./crash-release.js"),
  ]);
  const log = createLog(release?.logLevel ?? "error", "supervisor");
  log.error(death, "worker process died");
  if (release !== undefined) await releaseAfterCrash(release, log);
}

function start(): void {
  const startedAt = performance.now();
  const child = fork(PROGRAM, {
    // By default, ONNX Runtime reports usage to its makers.
    env: { ...CUDA, ...process.env, ORT_DISABLE_TELEMETRY: "1", [DEATHS]: JSON.stringify(deaths) },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  let release: CrashRelease | undefined;
  child.on("message", (message) => {
    release = message as CrashRelease;
  });
  const forward = (signal: NodeJS.Signals) => {
    stopping = true;
    child.kill(signal);
  };
  process.on("SIGTERM", forward);
  process.on("SIGINT", forward);
  const parentGone = () => {
    stopping = true;
    child.disconnect();
  };
  if (process.send !== undefined) process.on("disconnect", parentGone);
  child.on("exit", (code, signal) => {
    process.off("SIGTERM", forward);
    process.off("SIGINT", forward);
    process.off("disconnect", parentGone);
    if (stopping || code === EXIT_UNUSABLE) process.exit(code ?? 1);
    const cause = signal ?? String(code);
    deaths[cause] = (deaths[cause] ?? 0) + 1;
    if (performance.now() - startedAt > HEALTHY_MS) pauseMs = RESTART_MS.first;
    void afterDeath({ code, signal, restartInMs: pauseMs }, release);
    setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, RESTART_MS.most);
  });
}

start();
