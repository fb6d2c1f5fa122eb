/** Which models a worker would lose if another process took its place. */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Replaced } from "../supervision/messages.js";

type Failed = Announcement["failed"];
type Named = Replaced["models"];

/**
 * A version that was served may go if it is gone from the repository. It must not go because it
 * cannot be loaded any more, and neither must a model's last version.
 * @param served by the worker so far
 * @param loaded by the process that is to take its place
 * @param failed what that process could not load
 * @returns the failures that cost a model or a version
 */
export function lostModels(served: Named, loaded: Named, failed: Failed): Failed {
  const remains = new Set(loaded.map(({ name }) => name));
  return failed.filter(({ name, version }) => {
    const before = served.filter((model) => model.name === name);
    if (before.length === 0) return false;
    return !remains.has(name) || before.some((model) => model.version === version);
  });
}
