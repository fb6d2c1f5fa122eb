/** A request that was set aside, as its entry in the dead stream says it (set-aside.lua). */
import { parseRequestName, type RequestAddress } from "../address.js";
import { laneKeys } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { list, text } from "../../redis/script.js";

/** Where it lies. The id of its entry says when it was set aside. */
export interface DeadPlace {
  readonly bucket: number;
  readonly model: string;
  /** Redis ms and a count, `ms-count`. */
  readonly entry: string;
}

export interface DeadRequest extends DeadPlace {
  readonly tenant: string;
  /** Why, as the code of the error that its client got. */
  readonly reason: string;
  /** How often it has run alone. */
  readonly runs: number;
  /** Undefined where an earlier version of Baton has set it aside. */
  readonly request: RequestAddress | undefined;
  /** The name of the job that it ran (`requestName`). */
  readonly job: string | undefined;
  /** Of a step: the encoded id of its sequence, and its number there. */
  readonly step: { readonly sequence: string; readonly number: number } | undefined;
  /** How long its frame was. */
  readonly bytes: number;
}

/** @returns undefined where there is none, or it does not say whose it is */
export async function readDeadRequest(redis: RedisClient, place: DeadPlace): Promise<DeadRequest | undefined> {
  const reply = await redis.callBuffer("XRANGE", [deadKey(place), place.entry, place.entry]);
  const [found] = list(reply);
  if (found === undefined) return undefined;
  const [, fields] = list(found);
  const all = list(fields);
  const at = all.findIndex((field, i) => i % 2 === 0 && text(field) === "frame");
  const frame = at === -1 ? undefined : all[at + 1];
  return deadRequestOf(place, all, Buffer.isBuffer(frame) ? frame.length : 0);
}

export async function removeDeadRequest(redis: RedisClient, place: DeadPlace): Promise<void> {
  await redis.xdel(deadKey(place), place.entry);
}

/**
 * @param fields names and values in turn
 * @param frame how much of its frame is kept, in bytes
 */
export function deadRequestOf(place: DeadPlace, fields: readonly unknown[], frame: number): DeadRequest | undefined {
  const valueOf = (name: string) => {
    const at = fields.findIndex((field, i) => i % 2 === 0 && text(field) === name);
    return at === -1 ? "" : text(fields[at + 1]);
  };
  const [request, sequence, job] = [valueOf("request"), valueOf("sequence"), valueOf("job")];
  const { tenant } = parseRequestName(request === "" ? sequence : request);
  if (tenant === "") return undefined;
  const { bucket, model } = place;
  return {
    ...place,
    tenant,
    reason: valueOf("reason"),
    runs: Number(valueOf("runs")),
    request: request === "" ? undefined : { bucket, model, ...parseRequestName(request) },
    job: job === "" ? undefined : job,
    step:
      sequence === "" ? undefined : { sequence: parseRequestName(sequence).request, number: Number(valueOf("step")) },
    bytes: Number(valueOf("bytes of frame")) || frame,
  };
}

function deadKey({ bucket, model }: DeadPlace): string {
  return laneKeys({ bucket, model, version: "", digest: "" }).dead;
}
