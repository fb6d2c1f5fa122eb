/**
 * The worker's supervisor. A native crash in a model kills the whole process that ran it, threads and all, so the work is done in a child and this process starts
 * the next one within a second, without the container exiting.
 */
import { fork } from "node:child_process";
import { createLog } from "#shared/log.js";
import { workerConfig, type WorkerConfig } from "./config.js";

/** Doubled with each crash in a row, so that a worker that cannot live does not eat the machine. */
const RESTART_MS = { first: 50, most: 1_000 };
/** Wrong settings: starting again would not help. EX_CONFIG of sysexits. */
const EXIT_UNUSABLE = 78;
/** A child that lived this long was not part of a crash loop. */
const HEALTHY_MS = 10_000;

/**
 * Results of a model are memory outside of V8's heap. By default V8 collects the whole heap whenever heap and outside have together grown by a fraction of what lives in
 * the heap, and that is little here: a dozen times a second, for nearly half of a model thread's time. Now they may grow to five times of it.
 */
const HEAP_GROWTH = "--heap-growing-percent=400";

const config = readConfig();
const log = createLog(config.BATON_LOG_LEVEL, "supervisor");
let pauseMs = RESTART_MS.first;
let stopping = false;

function readConfig(): WorkerConfig {
  try {
    return workerConfig(process.env);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(EXIT_UNUSABLE);
  }
}

/** Loaded when it is needed: until then a supervisor would only read a client for Redis, while its worker waits for the processor. */
async function settle(message: unknown): Promise<void> {
  const { settleEstate } = await import("./estate.js");
  await settleEstate(message, config.BATON_REDIS_URL, log);
}

function start(): void {
  const startedAt = performance.now();
  const child = fork(new URL("./serve.js", import.meta.url), {
    // ONNX Runtime reports to its makers unless told otherwise.
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1" },
    execArgv: [...process.execArgv, HEAP_GROWTH],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  let estate: unknown;
  child.on("message", (message) => {
    estate = message;
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
    if (stopping) process.exit(code ?? 1);
    if (performance.now() - startedAt > HEALTHY_MS) pauseMs = RESTART_MS.first;
    log.error({ code, signal, restartInMs: pauseMs }, "worker process died");
    if (estate !== undefined) void settle(estate);
    setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, RESTART_MS.most);
  });
}

start();
