/**
 * A short way for the most common request, an inference on a tensor model. The target alone
 * decides, and the answer needs none of the objects that router and framework make for every
 * request. A plain request with a small body needs no objects of node's server either. Any unusual
 * request takes the framework's way. All ways have the same handler and give the same answers.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { RequestBudget } from "../../admission/budget.js";
import { unknownModel } from "../../fleet/models.js";
import type { Fleet } from "../../fleet/watch.js";
import type { CallTerms, ModelExchange } from "./exchange.js";
import { inferForm, inferOverHttp, inferWhole } from "./infer.js";
import { endUnread } from "../../http/body.js";
import { chooseRequestId } from "../../http/headers.js";
import type { PlainRoute } from "../../http/plain-connections.js";
import { errorReply, isRefusal } from "../../formats/errors.js";
import { withHeaders, type Reply } from "../../formats/reply.js";
import { send } from "../../http/send.js";
import { admitTo, askingOf, laterJudgement, type Asking, type Guard } from "../../http/guard.js";

export interface DirectOptions extends Omit<
  ModelExchange,
  "incoming" | "outgoing" | "judgeAgain" | "tenant" | "budget" | "model" | "version" | "others"
> {
  readonly fleet: Fleet;
  readonly guard: Guard;
  /** Called with each failure that is a bug and no refusal. */
  readonly onBug: (error: unknown, target: string, requestId: string) => void;
}

function nothing(): void {}

export interface DirectRoutes {
  /** @returns whether it answers the request, now or later; if not, the request is untouched */
  readonly direct: (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;
  readonly plain: PlainRoute;
}

const plainTarget = /^\/v2\/models\/([A-Za-z0-9._-]{1,128})(?:\/versions\/([0-9]+))?\/infer$/;
/** Hosts that need no closer look; the framework judges any other. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;

export function directRoutes(options: DirectOptions): DirectRoutes {
  const { fleet, guard, onBug, bodies, reader, inference, printer, limits } = options;
  const hasForm = (target: string, { host = "" }: IncomingHttpHeaders): boolean =>
    plainHost.test(host) && plainTarget.test(target) && !target.includes("..");
  /**
   * Undefined if the framework's way answers: with a refusal, or with a generation. So all refusals
   * of a key are written in one place, and a model that the key may not use has the answer of a
   * model that is not there. A promise if the key has to be looked up first.
   */
  const find = (asking: Asking): CallTerms | Promise<void> | undefined => {
    const [, name = "", version] = plainTarget.exec(asking.target) ?? [];
    try {
      const owner = admitTo(guard, asking, "infer");
      if (owner instanceof Promise) return owner.then(nothing, nothing);
      const model = fleet.directory.find(name, version);
      if (model.generator !== undefined || !owner.mayUse(name)) return undefined;
      const { tenant } = owner;
      const budget = owner.budget && new RequestBudget(owner.budget);
      budget?.onRefusal((error) => guard.audit?.limited(owner, error));
      // Each member by its name: V8 spreads one object fast, and a second one slowly.
      return { tenant, budget, model, version, others: fleet.directory.others(model), inference, printer, limits };
    } catch (error) {
      if (!isRefusal(error)) onBug(error, asking.target, "");
      return undefined;
    }
  };
  const answer = async <T>({ headers, target }: Asking, run: () => Promise<Reply | T>) => {
    const requestId = chooseRequestId(headers);
    try {
      return { reply: await run(), requestId };
    } catch (error) {
      if (!isRefusal(error)) onBug(error, target, requestId);
      return { reply: errorReply(error), requestId };
    }
  };
  return {
    direct(incoming, outgoing) {
      const { method, url = "", headers } = incoming;
      if (method !== "POST" || !hasForm(url, headers)) return false;
      const asking = askingOf(incoming);
      const found = find(asking);
      // The framework's way waits for the look-up.
      if (found === undefined || found instanceof Promise) return false;
      const judgeLater = laterJudgement(guard, asking, "infer");
      const judgeAgain = async () => {
        const owner = await judgeLater().catch((error: unknown) => {
          guard.audit?.refused(error, incoming);
          throw error;
        });
        if (owner?.mayUse(found.model.name) === false) throw unknownModel(found.model.name, found.version);
      };
      found.budget?.onHeaders((headers) => {
        for (const name in headers) outgoing.setHeader(name, headers[name] ?? "");
      });
      answer(asking, () => inferOverHttp({ incoming, outgoing, bodies, reader, judgeAgain, ...found }))
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
      takes: ({ target, headers }) => hasForm(target, headers),
      find(head) {
        const found = find(head);
        if (found === undefined || found instanceof Promise) return found;
        const form = inferForm(found, head.headers);
        if (head.length > form.maxBytes) return undefined;
        const answered = (body: Buffer) => answer(head, () => inferWhole(found, head.headers, form, body));
        const { budget } = found;
        if (budget === undefined) return answered;
        return async (body) => {
          const { reply, requestId } = await answered(body);
          return { reply: withHeaders(reply, budget.headers ?? {}), requestId };
        };
      },
    },
  };
}
