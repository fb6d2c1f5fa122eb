/**
 * The typed wrapper of heartbeat.lua: a worker process reports that it lives, and reads news of
 * other workers.
 */
import { graveIn, type DatedGrave } from "./graves.js";
import { registryKeys } from "../../keys.js";
import { verbosityIn } from "../../log-setting.js";
import type { ReportField } from "../../pieces/report.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../../redis/script.js";

export interface Beat {
  readonly worker: string;
  /** The worker counts as living for so long without another beat. */
  readonly leaseMs: number;
  /**
   * The answer names workers that have been silent for so long. Undefined if the worker does not
   * ask.
   */
  readonly silentMs: number | undefined;
  /** Whether a worker that asks also asks for what rarely changes; absent: yes. */
  readonly wantsNews?: boolean;
  /** The worker's connection (`OwnConnection`) if it is new; otherwise undefined. */
  readonly connection: string | undefined;
  /** What the worker uses and does, from `writeLoad`; absent: no news. */
  readonly load?: string | undefined;
  /** The fields of the hash of reports that have changed, with their values; absent: none. */
  readonly report?: readonly ReportField[];
}

/** A worker that has been silent. */
export interface Silent {
  readonly worker: string;
  /**
   * Until when the worker counts as living, in Redis ms. Each beat of the worker changes this
   * value.
   */
  readonly aliveUntil: number;
  /** The connection that the worker noted last; empty if it noted none. */
  readonly connection: string;
}

/** How many workers live, including the caller, and which other workers have been silent. */
export interface FleetNews {
  readonly living: number;
  readonly silent: readonly Silent[];
  /** The number of the fleet's wish (`wish.ts`); 0 if there is none, or the worker did not ask. */
  readonly wish: number;
  /** How much all processes log; undefined if the worker did not ask. */
  readonly logging: { readonly verbosity: number | undefined } | undefined;
}

export type BeatAnswer =
  | { readonly said: "unknown"; readonly redisNow: number }
  | {
      readonly said: "noted";
      /** Redis time in ms: the only clock for deadlines. */
      readonly redisNow: number;
      readonly graves: readonly DatedGrave[];
      /** Undefined if the worker did not ask and no grave is open. */
      readonly news: FleetNews | undefined;
    };

const answers = ["unknown", "noted"] as const;

const script = defineScript(
  new URL("./heartbeat.lua", import.meta.url),
  (reply): BeatAnswer => {
    if (!Array.isArray(reply)) return { said: "noted", redisNow: integer(reply), graves: [], news: undefined };
    const [now, said, living, graves, silent, wish, logging] = list(reply);
    const redisNow = integer(now);
    if (word(said, answers) === "unknown") return { said: "unknown", redisNow };
    return {
      said: "noted",
      redisNow,
      graves: datedGraves(list(graves).map(text)),
      news: {
        living: integer(living),
        silent: triples(list(silent).map(text)),
        wish: Number(text(wish)),
        logging: logging === null ? undefined : { verbosity: verbosityIn(text(logging)) },
      },
    };
  },
  {
    keys: ["workers", "graves", "announcements", "connections", "reports", "wish", "logging"],
    args: ["worker", "leaseMs", "silentMs", "news", "connection", "load", { report: ["field", "figures"] }],
  },
);

function datedGraves(items: readonly string[]): DatedGrave[] {
  return Array.from({ length: items.length / 2 }, (_, i) => {
    const [grave = "", seenAt = "0"] = items.slice(2 * i, 2 * i + 2);
    return { ...graveIn(grave), seenAt: Number(seenAt) };
  });
}

function triples(items: readonly string[]): Silent[] {
  return Array.from({ length: items.length / 3 }, (_, i) => {
    const [worker = "", aliveUntil = "0", connection = ""] = items.slice(3 * i, 3 * i + 3);
    return { worker, aliveUntil: Number(aliveUntil), connection };
  });
}

export function heartbeat(redis: RedisClient, beat: Beat): Promise<BeatAnswer> {
  const { worker, leaseMs, silentMs, wantsNews = true, connection, load = "", report = [] } = beat;
  return script(redis, registryKeys, {
    worker,
    leaseMs,
    silentMs: silentMs === undefined ? "" : Math.round(silentMs),
    news: wantsNews ? "1" : "",
    connection: connection ?? "",
    load,
    report,
  });
}
