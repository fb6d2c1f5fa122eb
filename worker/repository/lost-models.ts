/** Which models a worker would lose if another process took its place. */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Replaced } from "../supervision/messages.js";

type Failed = Announcement["failed"];

/** What the process that is to take the place has read and loaded. */
export interface Newcomer {
  /** Everything in the repositories that looks like a model. */
  readonly found: readonly unknown[];
  readonly loaded: readonly {
    readonly name: string;
    readonly version: string;
    /** Why it runs on the CPU instead of on the GPU; undefined if it does not. */
    readonly fallback: string | undefined;
  }[];
  readonly failed: Failed;
  /** Ensembles of which a step's model is gone, or is not wanted any more. */
  readonly bereft: ReadonlySet<string>;
}

/**
 * A version that was served may go if it is gone from the repository. It must not go because it
 * cannot be loaded any more, and neither must a model's last version. A repository without any
 * model is rather a volume that is away. A model must not leave its GPU because the card holds the
 * models of two processes for a moment. An ensemble goes with the models of its steps.
 * @param served by the worker so far
 * @returns the failures that cost a model or a version, or a model its GPU
 */
export function lostModels(served: Replaced["models"], { found, loaded, failed, bereft }: Newcomer): Failed {
  const names = new Set(served.map(({ name }) => name));
  if (found.length === 0) return [...names].map((name) => ({ name, reason: "the repositories hold no model at all" }));
  const remains = new Set(loaded.map(({ name }) => name));
  const gone = failed.filter(({ name, version }) => {
    const before = served.filter((model) => model.name === name);
    if (before.length === 0 || bereft.has(name)) return false;
    return !remains.has(name) || before.some((model) => model.version === version);
  });
  const slowed = loaded.flatMap(({ name, version, fallback }) => {
    const wasOnGpu = served.some((model) => model.name === name && model.isOnGpu);
    return fallback !== undefined && wasOnGpu ? [{ name, version, reason: fallback }] : [];
  });
  return [...gone, ...slowed];
}
