/**
 * A short way for the most common request, an inference on a tensor model. The target alone
 * decides, and the answer needs none of the objects that router and framework make for every
 * request. A plain request with a small body needs no objects of node's server either. Any unusual
 * request takes the framework's way. All ways have the same handler and give the same answers.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Fleet } from "../../fleet/watch.js";
import type { CallTerms, ModelExchange } from "./exchange.js";
import { inferForm, inferOverHttp, inferWhole } from "./infer.js";
import { endUnread } from "../../http/body.js";
import { chooseRequestId } from "../../http/headers.js";
import type { PlainRoute } from "../../http/plain-connections.js";
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
  readonly onBug: (error: unknown, target: string, requestId: string) => void;
}

export interface DirectRoutes {
  /** @returns whether it answers the request, now or later; if not, the request is untouched */
  readonly direct: (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;
  readonly plain: PlainRoute;
}

const plainTarget = /^\/v2\/models\/([A-Za-z0-9._-]{1,128})(?:\/versions\/([0-9]+))?\/infer$/;
/** Hosts that need no closer look; the framework judges any other. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;

export function directRoutes({ fleet, tenantOf, onBug, ...rest }: DirectOptions): DirectRoutes {
  const takes = (target: string, { host = "" }: IncomingHttpHeaders): boolean =>
    plainHost.test(host) && plainTarget.test(target) && !target.includes("..");
  const find = (target: string): Pick<CallTerms, "model" | "version" | "others"> | undefined => {
    const [, name = "", version] = plainTarget.exec(target) ?? [];
    try {
      const model = fleet.directory.find(name, version);
      if (model.generator !== undefined) return undefined;
      return { model, version, others: fleet.directory.others(model) };
    } catch {
      return undefined; // the framework's way makes the same refusal and answers with it
    }
  };
  const answer = async <T>(
    target: string,
    headers: IncomingHttpHeaders,
    run: (tenant: string) => Promise<Reply | T>,
  ): Promise<{ reply: Reply | T; requestId: string }> => {
    const requestId = chooseRequestId(headers);
    try {
      return { reply: await run(tenantOf({ headers })), requestId };
    } catch (error) {
      if (!isRefusal(error)) onBug(error, target, requestId);
      return { reply: errorReply(error), requestId };
    }
  };
  return {
    direct(incoming, outgoing) {
      const { method, url = "", headers } = incoming;
      const found = method === "POST" && takes(url, headers) ? find(url) : undefined;
      if (found === undefined) return false;
      answer(url, headers, (tenant) => inferOverHttp({ incoming, outgoing, tenant, ...found, ...rest }))
        .then(({ reply, requestId }) => {
          if (reply !== undefined) send(outgoing, reply, requestId);
          if (!incoming.readableEnded) endUnread(incoming);
        })
        .catch((error: unknown) => {
          onBug(error, url, "");
          outgoing.destroy();
        });
      return true;
    },
    plain: {
      takes: ({ target, headers }) => takes(target, headers),
      find({ target, headers, length }) {
        const found = find(target);
        if (found === undefined) return undefined;
        const form = inferForm({ ...found, ...rest }, headers);
        if (length > form.maxBytes) return undefined;
        return (body) =>
          answer(target, headers, (tenant) => inferWhole({ tenant, ...found, ...rest }, headers, form, body));
      },
    },
  };
}
