/** A request that a worker has set aside, from its entry in the dead stream (set-aside.lua). */
import { parseRequestName, type RequestAddress } from "../address.js";
import { laneKeys } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { list, text } from "../../redis/script.js";

/** The place of the entry. Its id says when the worker set the request aside. */
export interface DeadPlace {
  readonly bucket: number;
  readonly model: string;
  /** Redis ms and a count, `ms-count`. */
  readonly entry: string;
}

export interface DeadRequest extends DeadPlace {
  readonly tenant: string;
  /** The reason, as the code of the error that the client got. */
  readonly reason: string;
  /** How often the request has run alone. */
  readonly runs: number;
  /** Undefined if an earlier version of Baton has set the request aside. */
  readonly request: RequestAddress | undefined;
  /** The name of the job that the request ran (`requestName`). */
  readonly job: string | undefined;
  /** Of a step: the encoded id of its sequence, and its number there. */
  readonly step: { readonly sequence: string; readonly number: number } | undefined;
  /** The length of its frame. */
  readonly bytes: number;
}

/** @returns undefined if there is no such entry, or the entry names no tenant */
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
 * @param frame bytes of the frame that the entry still has
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
