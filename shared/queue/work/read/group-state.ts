/** The typed wrapper of group-state.lua: whether all delivered entries are pending. */
import { defineScript, integer, list, text } from "../../../redis/script.js";
import { GROUP, laneKeys } from "../../keys.js";
import type { LaneQueue } from "../lane.js";

/** A lane's ready stream and its group at one moment. */
export interface GroupState {
  /** Entries in the stream. */
  readonly length: number;
  /** The first and the last entry of the stream. */
  readonly oldest: string;
  readonly newest: string;
  /** Entries that consumers own. */
  readonly pending: number;
  /** The oldest pending entry; empty if there is none. */
  readonly oldestPending: string;
  /** The entry that Redis delivered last. */
  readonly last: string;
}

const script = defineScript(
  new URL("./group-state.lua", import.meta.url),
  (reply): GroupState | undefined => {
    if (reply === null) return undefined;
    const [length, oldest, newest, pending, oldestPending, last] = list(reply);
    return {
      length: integer(length),
      oldest: text(oldest),
      newest: text(newest),
      pending: integer(pending),
      oldestPending: text(oldestPending),
      last: text(last),
    };
  },
  { keys: ["ready"], args: ["group"] },
);

/** @returns undefined if there is no group, or no entry in the stream */
export function groupState({ redis, lane }: LaneQueue): Promise<GroupState | undefined> {
  return script(redis, laneKeys(lane), { group: GROUP });
}
