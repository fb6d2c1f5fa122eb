/** The typed wrapper of announce.lua: notes that a worker lives, and the models that it serves. */
import type { Announcement } from "../../../contract/announcement.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, integer, list } from "../../../redis/script.js";
import type { Lane } from "../../address.js";
import { graveOf, graveText } from "./graves.js";
import { registryKeys } from "../../keys.js";

export interface Joined {
  /** Redis time in ms. */
  readonly redisNow: number;
  /**
   * Whether the past has all that the worker had reported: the fleet had forgotten the worker.
   */
  readonly isReportPast: boolean;
}

const decode = (reply: unknown): Joined => {
  const [now, isPast] = list(reply);
  return { redisNow: integer(now), isReportPast: integer(isPast) === 1 };
};

const script = defineScript(new URL("./announce.lua", import.meta.url), decode, {
  keys: ["workers", "graves", "announcements", "connections", "gone", "version", "left", "reports", "past"],
  args: ["worker", "announcement", "leaseMs", "connection", { graves: [] }],
});

export interface Joining {
  readonly announcement: Announcement;
  /** The worker counts as living for so long without a beat. */
  readonly leaseMs: number;
  /** The worker's connection (`OwnConnection`); undefined if unknown. */
  readonly connection: string | undefined;
  readonly lanes: readonly Lane[];
}

export function announce(redis: RedisClient, { announcement, leaseMs, connection, lanes }: Joining): Promise<Joined> {
  const { worker } = announcement;
  return script(redis, registryKeys, {
    worker,
    announcement: JSON.stringify(announcement),
    leaseMs,
    connection: connection ?? "",
    graves: lanes.map((lane) => graveText(graveOf(worker, lane))),
  });
}
