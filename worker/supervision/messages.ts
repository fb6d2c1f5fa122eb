/**
 * The messages between a worker process and its supervisor, and the models of the process that a
 * worker replaces in a roll-out. The supervisor imports this file, so the file imports only types.
 */
import type { Announcement } from "#shared/contract/announcement.js";
import type { CrashRelease } from "./crash-release.js";

/** Why a process could not take the place of another. */
export interface RollOutRefusal {
  /** The number of the wish that the process read; absent if it read none. */
  readonly number?: number;
  readonly reason: string;
  /** The models that the process could not load. */
  readonly failed: Announcement["failed"];
}

/** From a worker process to its supervisor. */
export type WorkerMessage =
  /** The process may own entries from now on. */
  | { readonly says: "holds"; readonly release: CrashRelease; readonly models: Replaced["models"] }
  /** The process is in the fleet. */
  | { readonly says: "serves" }
  /** Another process shall load the models anew, and take this process's place. */
  | { readonly says: "rollOut" }
  /** The process must not take the place of the process before it, and ends. */
  | ({ readonly says: "refuses" } & RollOutRefusal);

/** From the supervisor to a worker process. */
export type SupervisorMessage =
  /** Another process has taken this process's place. */
  | { readonly says: "retire" }
  /** No other process could take this process's place. */
  | ({ readonly says: "goOn" } & RollOutRefusal);

/** The process that a worker replaces. */
export interface Replaced {
  readonly worker: string;
  readonly models: readonly {
    readonly name: string;
    readonly version: string;
    /** Whether an instance of it runs on a GPU. */
    readonly isOnGpu: boolean;
  }[];
}

/** The variable that is set if another process lives that may still have the metrics' port. */
export const BESIDE = "SUPERVISOR_SEES_ANOTHER";

/** The variable with the replaced process as JSON. */
export const REPLACES = "SUPERVISOR_REPLACES";

/** @returns undefined if the process replaces none */
export function replacedIn(env: NodeJS.ProcessEnv): Replaced | undefined {
  const text = env[REPLACES];
  return text === undefined ? undefined : (JSON.parse(text) as Replaced);
}

/** Resolves once the supervisor has the message, or at once without a supervisor. */
export function tellSupervisor(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}
