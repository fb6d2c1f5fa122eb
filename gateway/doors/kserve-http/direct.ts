/**
 * A short way for the most common request, an inference on a tensor model. The target alone
 * decides, and the answer needs none of the objects that router and framework make for every
 * request. Any unusual request takes the framework's way. Both ways have the same handler and give
 * the same answers.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Fleet } from "../../fleet/watch.js";
import type { ModelExchange } from "./exchange.js";
import { inferOverHttp } from "./infer.js";
import { endUnread } from "../../http/body.js";
import { chooseRequestId } from "../../http/headers.js";
import { errorReply, isRefusal } from "../../formats/errors.js";
import type { Reply } from "../../formats/reply.js";
import { send } from "../../http/send.js";
import type { TenantOf } from "../../http/tenant.js";

export interface DirectOptions extends Omit<
  ModelExchange,
  "incoming" | "outgoing" | "tenant" | "model" | "version" | "others"
> {
  readonly fleet: Fleet;
  readonly tenantOf: TenantOf;
  /** Called with each failure that is a bug and no refusal. */
  readonly onBug: (error: unknown, incoming: IncomingMessage, requestId: string) => void;
}

/**
 * @returns whether the route answers the request, now or later; if not, the request is untouched
 */
export type DirectRoute = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

const plainTarget = /^\/v2\/models\/([A-Za-z0-9._-]{1,128})(?:\/versions\/([0-9]+))?\/infer$/;
/** Hosts that need no closer look; the framework judges any other. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;

export function directRoute({ fleet, tenantOf, onBug, ...rest }: DirectOptions): DirectRoute {
  const tensorModel = (name: string, version: string | undefined): ServedModel | undefined => {
    try {
      const model = fleet.directory.find(name, version);
      return model.generator === undefined ? model : undefined;
    } catch {
      return undefined; // the framework's way makes the same refusal and answers with it
    }
  };
  const answer = async (exchange: Omit<ModelExchange, "tenant">): Promise<void> => {
    const { incoming, outgoing } = exchange;
    const requestId = chooseRequestId(incoming.headers);
    let reply: Reply | undefined;
    try {
      reply = await inferOverHttp({ ...exchange, tenant: tenantOf(incoming) });
    } catch (error) {
      if (!isRefusal(error)) onBug(error, incoming, requestId);
      reply = errorReply(error);
    }
    if (reply !== undefined) send(outgoing, reply, requestId);
    if (!incoming.readableEnded) endUnread(incoming);
  };
  return (incoming, outgoing) => {
    if (incoming.method !== "POST" || !plainHost.test(incoming.headers.host ?? "")) return false;
    const [target, name = "", version] = plainTarget.exec(incoming.url ?? "") ?? [];
    if (target === undefined || name.includes("..")) return false;
    const model = tensorModel(name, version);
    if (model === undefined) return false;
    const others = fleet.directory.others(model);
    answer({ incoming, outgoing, model, version, others, ...rest }).catch((error: unknown) => {
      onBug(error, incoming, "");
      outgoing.destroy();
    });
    return true;
  };
}
