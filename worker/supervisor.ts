/**
 * The worker's supervisor: starts the worker as a child process, and a new worker after each death.
 * A native crash in a model kills the whole process with all threads. Thanks to the supervisor, a
 * new worker runs within a second, and the container does not exit. If the models change, a second
 * child loads them beside the first, takes its place, and the first drains. Every import of this
 * file delays the worker's start. So the supervisor loads the code for a death only at a death, and
 * reads no settings.
 */
import { fork, type ChildProcess } from "node:child_process";
import { EXIT_UNUSABLE } from "#shared/exit.js";
import { DEATHS } from "./supervision/deaths.js";
import type { CrashRelease } from "./supervision/crash-release.js";
import {
  BESIDE,
  REPLACES,
  type Replaced,
  type RollOutRefusal,
  type SupervisorMessage,
  type WorkerMessage,
} from "./supervision/messages.js";

/** `main.ts` and all its imports, in a few files (infra/bundle.mjs). */
const PROGRAM = new URL("../bundled/worker/main.js", import.meta.url);

/**
 * In ms. The pause doubles with each crash in a row, to spare the machine if no worker can live.
 */
const RESTART_MS = { first: 50, most: 1_000 };
/** A child that lived longer than this, in ms, was not part of a crash loop. */
const HEALTHY_MS = 10_000;
/** After so many deaths in a row while new models load, the present worker keeps its models. */
const ROLL_OUT_DEATHS = 3;

/**
 * Defaults, which the environment may override. CUDA counts the GPUs as nvidia-smi does, and
 * computes 32-bit floats with all bits, so that a sequence may move from a CPU to a GPU and back.
 */
const CUDA = { CUDA_DEVICE_ORDER: "PCI_BUS_ID", NVIDIA_TF32_OVERRIDE: "0" };

interface Child {
  readonly process: ChildProcess;
  readonly startedAt: number;
  /** Undefined until the worker may hold entries. */
  release?: CrashRelease;
  /** Known as soon as `release` is. */
  models?: Replaced["models"];
  /** Set if the worker ends because it must not replace the worker before it. */
  refusal?: RollOutRefusal;
}

const children = new Set<Child>();
/** The worker that requests come to; undefined while there is none. */
let serving: Child | undefined;
/** The worker that is to take the place of `serving`. */
let coming: Child | undefined;
/** The worker whose place has been taken. A machine holds the models of two workers at most. */
let retiring: Child | undefined;
let isRollOutWanted = false;
let rollOutDeaths = 0;

let pauseMs = RESTART_MS.first;
let stopping = false;
let exitCode = 0;
/** Deaths of workers so far, by the signal or the exit code. Each worker shows them as metrics. */
const deaths: Record<string, number> = {};

/** @param release of a worker with the same settings */
async function openLog(release: CrashRelease | undefined) {
  const { createLog } = await import("#shared/log.js");
  return createLog(release?.logLevel ?? "error", "supervisor");
}

/** @param release undefined if the worker died before it sent a release: it held no entry then */
async function afterDeath(death: Readonly<Record<string, unknown>>, release: CrashRelease | undefined): Promise<void> {
  const [log, { releaseAfterCrash }] = await Promise.all([openLog(release), import("./supervision/crash-release.js")]);
  log.error(death, "worker process died");
  if (release !== undefined) await releaseAfterCrash(release, log);
}

function launch(replaced?: Replaced): Child {
  const env = {
    ...CUDA,
    ...process.env,
    // By default, ONNX Runtime reports usage to its makers.
    ORT_DISABLE_TELEMETRY: "1",
    [DEATHS]: JSON.stringify(deaths),
    ...(children.size > 0 && { [BESIDE]: "1" }),
    ...(replaced !== undefined && { [REPLACES]: JSON.stringify(replaced) }),
  };
  const started = fork(PROGRAM, { env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const child: Child = { process: started, startedAt: performance.now() };
  children.add(child);
  started.on("message", (message) => hear(child, message as WorkerMessage));
  started.on("exit", (code, signal) => ended(child, code, signal));
  return child;
}

function hear(child: Child, message: WorkerMessage): void {
  if (message.says === "holds") {
    child.release = message.release;
    child.models = message.models;
  } else if (message.says === "refuses") child.refusal = message;
  else if (message.says === "serves" && child === coming && !stopping) takePlace(child);
  else if (message.says === "rollOut" && child !== retiring) {
    // A worker may find at its very start that its models have changed again.
    isRollOutWanted = true;
    rollOut();
  }
}

function tell(child: Child | undefined, message: SupervisorMessage): void {
  // A child that has just died hears nothing more.
  child?.process.send(message, () => undefined);
}

/** Starts a worker beside the present worker, unless one starts or ends beside it already. */
function rollOut(): void {
  const { release, models = [] } = serving ?? {};
  const isBusy = stopping || coming !== undefined || retiring !== undefined;
  if (!isRollOutWanted || isBusy || release === undefined) return;
  isRollOutWanted = false;
  coming = launch({ worker: release.consumer, models });
  void hurry(coming);
}

/** A newcomer that hangs must not hinder all later roll-outs. */
async function hurry(child: Child): Promise<void> {
  const { watchLoading } = await import("./supervision/watch-loading.js");
  watchLoading({
    isLoading: () => child === coming && serving !== undefined,
    onLate: (minutes) => void sayLate(minutes),
    onOver: (minutes) => {
      child.refusal = { reason: `the models were not loaded within ${minutes} minutes`, failed: [] };
      child.process.kill("SIGKILL");
    },
  });
}

async function sayLate(minutes: number): Promise<void> {
  const log = await openLog(serving?.release);
  log.warn({ minutes }, "the process with the new models still loads them");
}

function takePlace(child: Child): void {
  retiring = serving;
  serving = child;
  coming = undefined;
  rollOutDeaths = 0;
  tell(retiring, { says: "retire" });
  // The worker before it may have died, and nothing that ends calls for the next roll-out then.
  rollOut();
}

function ended(child: Child, code: number | null, signal: NodeJS.Signals | null): void {
  children.delete(child);
  const role = child === serving ? "serving" : child === coming ? "coming" : "retiring";
  if (role === "serving") serving = undefined;
  else if (role === "coming") coming = undefined;
  else retiring = undefined;
  if (stopping) {
    // A worker that comes may have been killed below, in the middle of its loading.
    if (role !== "coming") exitCode ||= code ?? 1;
    if (children.size === 0) process.exit(exitCode);
    return;
  }
  if (role === "serving" && code === EXIT_UNUSABLE) process.exit(code);
  const hasEnded = code === 0 && (child.refusal !== undefined || role === "retiring");
  if (!hasEnded) died(child, code, signal);
  if (serving === undefined && coming === undefined) {
    setTimeout(begin, pauseMs);
    pauseMs = Math.min(pauseMs * 2, RESTART_MS.most);
  } else if (role === "coming") {
    afterRollOut(child.refusal);
  } else rollOut();
}

function died(child: Child, code: number | null, signal: NodeJS.Signals | null): void {
  const cause = signal ?? String(code);
  deaths[cause] = (deaths[cause] ?? 0) + 1;
  if (performance.now() - child.startedAt > HEALTHY_MS) pauseMs = RESTART_MS.first;
  void afterDeath({ code, signal, restartInMs: pauseMs }, child.release);
}

/** @param refusal undefined if the worker died */
function afterRollOut(refusal: RollOutRefusal | undefined): void {
  rollOutDeaths = refusal === undefined ? rollOutDeaths + 1 : 0;
  if (refusal !== undefined) tell(serving, { ...refusal, says: "goOn" });
  else if (rollOutDeaths < ROLL_OUT_DEATHS) isRollOutWanted = true;
  else {
    rollOutDeaths = 0;
    tell(serving, { says: "goOn", reason: "the process that loaded it died", failed: [] });
  }
  setTimeout(rollOut, RESTART_MS.most);
}

function begin(): void {
  if (!stopping && serving === undefined && coming === undefined) serving = launch();
}

function stop(signal: NodeJS.Signals): void {
  stopping = true;
  if (children.size === 0) process.exit(0);
  // A worker that only loads models has nothing to hand back.
  for (const child of children)
    child.process.kill(child.release === undefined && child === coming ? "SIGKILL" : signal);
}

process.on("SIGTERM", stop);
process.on("SIGINT", stop);
if (process.send !== undefined) {
  process.on("disconnect", () => {
    stopping = true;
    if (children.size === 0) process.exit(0);
    for (const child of children) if (child.process.connected) child.process.disconnect();
  });
}
begin();
