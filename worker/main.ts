/**
 * The worker's supervisor. A native crash in a model kills the whole process that ran it, threads and all, so the work is done in a child and this process starts
 * the next one within a second, without the container exiting. Whatever it imports delays the worker's start, so what only a death needs is loaded at one, and the
 * settings are the worker's to read.
 */
import { fork } from "node:child_process";
import { EXIT_UNUSABLE } from "#shared/exit.js";
import type { Estate } from "./estate.js";

/** Doubled with each crash in a row, so that a worker that cannot live does not eat the machine. */
const RESTART_MS = { first: 50, most: 1_000 };
/** A child that lived this long was not part of a crash loop. */
const HEALTHY_MS = 10_000;

/**
 * Results of a model are memory outside of V8's heap. By default V8 collects the whole heap whenever heap and outside have together grown by a fraction of what lives in
 * the heap, and that is little here: a dozen times a second, for nearly half of a model thread's time. Now they may grow to five times of it.
 */
const HEAP_GROWTH = "--heap-growing-percent=400";

let pauseMs = RESTART_MS.first;
let stopping = false;

/** @param estate undefined where the worker has not lived to tell of it: then there is none. */
async function settle(death: Readonly<Record<string, unknown>>, estate: Estate | undefined): Promise<void> {
  const [{ createLog }, { settleEstate }] = await Promise.all([import("#shared/log.js"), import("./estate.js")]);
  const log = createLog(estate?.logLevel ?? "error", "supervisor");
  log.error(death, "worker process died");
  if (estate !== undefined) await settleEstate(estate, log);
}

function start(): void {
  const startedAt = performance.now();
  const child = fork(new URL("./serve.js", import.meta.url), {
    // ONNX Runtime reports to its makers unless told otherwise.
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1" },
    execArgv: [...process.execArgv, HEAP_GROWTH],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  let estate: Estate | undefined;
  child.on("message", (message) => {
    estate = message as Estate;
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
    void settle({ code, signal, restartInMs: pauseMs }, estate);
    setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, RESTART_MS.most);
  });
}

start();
