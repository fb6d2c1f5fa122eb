/** The typed wrapper of list-open.lua: lists the requests of a tenant that have not ended. */
import { openRequest } from "../../records/requests.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { GROUP } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";
import type { PageStart } from "../pieces/page.js";

export interface OpenRequest {
  /** The outcome's key without `out:`, `{tag}:model:tenant:request`. */
  readonly name: string;
  /** `running`: a worker has it. */
  readonly state: string;
  /** Redis ms of the admission. */
  readonly at: number | undefined;
  /** Its rank in its queue; undefined if it waits on the usual terms, or waits no more. */
  readonly rank: number | undefined;
  /** `tenant:id`, from `sequenceName`; "" for a stateless request. */
  readonly sequence: string;
  /** Number of the step as clients count; undefined for a stateless request. */
  readonly step: number | undefined;
  /** The worker that has it; "" if none has. */
  readonly worker: string;
  /** How often a worker has taken it. */
  readonly deliveries: number;
  /** Records in its log. */
  readonly records: number;
}

export interface OpenPage {
  /** May be empty although there are more. */
  readonly requests: readonly OpenRequest[];
  /** Undefined if there are no more. */
  readonly next: PageStart | undefined;
}

export interface OpenTerms {
  readonly model: string;
  readonly tenant: string;
  /** The most requests of the page. */
  readonly most: number;
  /** Version of the model; undefined for any. */
  readonly version: string | undefined;
  /** `queued` or `running`; undefined for any. */
  readonly state: string | undefined;
}

const script = defineScript(
  new URL("./list-open.lua", import.meta.url),
  (reply): OpenPage => {
    const [requests, cursor, after] = list(reply);
    const next = { cursor: text(cursor), after: text(after) };
    const isLast = next.cursor === "0" && next.after === "";
    return { requests: list(requests).map(openRequestOf), next: isLast ? undefined : next };
  },
  {
    keys: ["load"],
    args: ["model", "tenant", "cursor", "after", "most", "version", "state", "group"],
    durable: true,
  },
);

function openRequestOf(reply: unknown): OpenRequest {
  const { at, terms, step, ...rest } = openRequest.read(reply);
  const known = (digits: string) => (digits === "" ? undefined : Number(digits));
  return { ...rest, at: known(at), rank: known(/^\d*/.exec(terms)?.[0] ?? ""), step: known(step) };
}

/** @param bucket whose counts name the requests; outside of a Cluster they name those of all */
export function listOpen(redis: RedisClient, bucket: number, terms: OpenTerms, start: PageStart): Promise<OpenPage> {
  const { version = "", state = "" } = terms;
  return script(redis, { load: loadKeyOf(redis, bucket) }, { ...terms, version, state, ...start, group: GROUP });
}
