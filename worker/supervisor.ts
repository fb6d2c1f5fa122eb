/**
 * The worker's supervisor: starts the worker as a child process, and the next one when it dies. A
 * native crash in a model kills the whole process that ran it, threads and all. So a new worker
 * stands within a second, and the container does not exit. Whatever this file imports delays the
 * worker's start, so it loads only at a death what a death needs, and leaves the settings to the
 * worker.
 */
import { fork } from "node:child_process";
import { EXIT_UNUSABLE } from "#shared/exit.js";
import type { CrashRelease } from "./crash-release.js";

/** `main.ts` and all that it imports, in a few files (infra/bundle.mjs). */
const PROGRAM = new URL("../bundled/worker/main.js", import.meta.url);

/**
 * The pause doubles with each crash in a row, so that a worker that cannot live spares the machine.
 */
const RESTART_MS = { first: 50, most: 1_000 };
/** A child that lived this long was not part of a crash loop. */
const HEALTHY_MS = 10_000;

/**
 * Unless the environment says otherwise, CUDA counts the GPUs as nvidia-smi does, and computes
 * 32-bit floats with all of their bits, so that a sequence may go on from a CPU to a GPU and back.
 */
const CUDA = { CUDA_DEVICE_ORDER: "PCI_BUS_ID", NVIDIA_TF32_OVERRIDE: "0" };

let pauseMs = RESTART_MS.first;
let stopping = false;

/** @param release undefined where the worker died before it declared one: it held nothing then */
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
    // ONNX Runtime reports usage to its makers unless told otherwise.
    env: { ...CUDA, ...process.env, ORT_DISABLE_TELEMETRY: "1" },
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
    if (performance.now() - startedAt > HEALTHY_MS) pauseMs = RESTART_MS.first;
    void afterDeath({ code, signal, restartInMs: pauseMs }, release);
    setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, RESTART_MS.most);
  });
}

start();
