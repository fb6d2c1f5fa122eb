/** The typed wrapper of announce.lua: notes that a worker lives, and the models that it serves. */
import type { Announcement } from "../../../contract/announcement.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, integer } from "../../../redis/script.js";
import type { Lane } from "../../address.js";
import { graveOf, graveText } from "./graves.js";
import { registryKeys } from "../../keys.js";

const script = defineScript(new URL("./announce.lua", import.meta.url), integer, {
  keys: ["workers", "graves", "announcements", "connections", "gone", "version", "left"],
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

/** @returns Redis time in ms */
export function announce(redis: RedisClient, { announcement, leaseMs, connection, lanes }: Joining): Promise<number> {
  const { worker } = announcement;
  return script(redis, registryKeys, {
    worker,
    announcement: JSON.stringify(announcement),
    leaseMs,
    connection: connection ?? "",
    graves: lanes.map((lane) => graveText(graveOf(worker, lane))),
  });
}
