/**
 * A short way for the most common request, an inference on a tensor model. The target alone
 * decides, and the answer needs none of the objects that router and framework make for every
 * request. A plain request with a small body needs no objects of node's server either. Any unusual
 * request takes the framework's way. All ways have the same handler and give the same answers.
 */
import { hasStreams } from "#shared/contract/announcement.js";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { RequestBudget } from "../../admission/budget.js";
import type { Client } from "../../admission/inference.js";
import { noted } from "../../facts/request-facts.js";
import { TracedInference } from "../../admission/traced-inference.js";
import { unknownModel } from "../../fleet/models.js";
import type { Fleet } from "../../fleet/watch.js";
import type { CallTerms, ModelExchange } from "./exchange.js";
import { inferForm, inferOverHttp, inferWhole } from "./infer.js";
import { endUnread } from "../../http/body.js";
import type { AnswerFacts } from "../../facts/answer-facts.js";
import { noteModel, noteRoute } from "../../http/counts.js";
import { chooseRequestId } from "../../http/headers.js";
import type { PlainRoute } from "../../http/plain-connections.js";
import { errorReply, isRefusal } from "../../formats/errors.js";
import { withHeaders, type Reply } from "../../formats/reply.js";
import { send } from "../../http/send.js";
import { admitTo, askingOf, laterJudgement, type Asking, type Guard } from "../../http/guard.js";
import type { FrontDoor } from "../../http/traces/front-door.js";
import { codeOf, traceAnswer } from "../../http/traces/traced-answer.js";
import type { RequestTrace } from "../../trace/request-trace.js";

export interface DirectOptions extends Omit<
  ModelExchange,
  "incoming" | "outgoing" | "judgeAgain" | "tenant" | "budget" | "model" | "version" | "others"
> {
  readonly fleet: Fleet;
  readonly guard: Guard;
  /** Called with each failure that is a bug and no refusal. */
  readonly onBug: (error: unknown, target: string, requestId: string) => void;
  /** Absent if the gateway makes no traces. */
  readonly frontDoor?: FrontDoor | undefined;
}

function nothing(): void {}

export interface DirectRoutes {
  /** @returns whether it answers the request, now or later; if not, the request is untouched */
  readonly direct: (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;
  readonly plain: PlainRoute;
}

/** The declared paths that these routes answer. */
const PATHS = { newest: "/v2/models/:model/infer", named: "/v2/models/:model/versions/:version/infer" };
const plainTarget = /^\/v2\/models\/([A-Za-z0-9._-]{1,128})(?:\/versions\/([0-9]+))?\/infer$/;
/** Hosts that need no closer look; the framework judges any other. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;

/** The declared paths of these requests, for the figures of HTTP. */
function routeOf(target: string): string {
  return target.includes("/versions/") ? PATHS.named : PATHS.newest;
}

export function directRoutes(options: DirectOptions): DirectRoutes {
  const { fleet, guard, onBug, bodies, reader, inference, printer, limits } = options;
  const hasForm = (target: string, headers: IncomingHttpHeaders): boolean =>
    plainHost.test(headers.host ?? "") &&
    plainTarget.test(target) &&
    !target.includes("..") &&
    guard.restricted?.refusal("inference", headers) === undefined;
  /**
   * Undefined if the framework's way answers: with a refusal, or with a generation. So all refusals
   * of a key are written in one place, and a model that the key may not use has the answer of a
   * model that is not there. A promise if the key has to be looked up first.
   */
  const find = (asking: Asking, facts?: AnswerFacts): CallTerms | Promise<void> | undefined => {
    const [, name = "", version] = plainTarget.exec(asking.target) ?? [];
    try {
      const owner = admitTo(guard, asking, "infer");
      if (owner instanceof Promise) return owner.then(nothing, nothing);
      const model = fleet.directory.find(name, version);
      if (hasStreams(model) || !owner.mayUse(name)) return undefined;
      const { tenant } = owner;
      if (facts !== undefined) Object.assign(facts, { tenant, route: routeOf(asking.target), model: name, version });
      const budget = owner.budget && new RequestBudget(owner.budget);
      budget?.onRefusal((error) => guard.audit?.limited(owner, error));
      // Each member by its name: V8 spreads one object fast, and a second one slowly.
      const others = fleet.directory.others(model);
      return { tenant, budget, model, version, others, inference: noted(inference, facts), printer, limits };
    } catch (error) {
      if (!isRefusal(error)) onBug(error, asking.target, "");
      return undefined;
    }
  };
  const answer = answering(onBug);
  return {
    direct(incoming, outgoing) {
      const { method, url = "", headers } = incoming;
      if (method !== "POST" || !hasForm(url, headers)) return false;
      const asking = askingOf(incoming);
      const found = find(asking, asking.facts);
      // The framework's way waits for the look-up.
      if (found === undefined || found instanceof Promise) return false;
      noteRoute(outgoing, routeOf(url));
      noteModel(outgoing, found.model.name);
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
      const { calls, trace } = traced(options, asking, found);
      if (trace !== undefined) traceAnswer(outgoing, trace);
      const exchange = { incoming, outgoing, bodies, reader, judgeAgain, ...calls };
      answer(asking, () => inferOverHttp(exchange), trace)
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
      routeOf: ({ target }) => routeOf(target),
      find(head, facts) {
        const found = find(head, facts);
        if (found === undefined || found instanceof Promise) return found;
        const form = inferForm(found, head.headers);
        if (head.length > form.maxBytes) return undefined;
        const { budget } = found;
        const answered = async (body: Buffer, client: Client) => {
          const { calls, trace } = traced(options, head, found);
          const { reply, requestId } = await answer(
            head,
            () => inferWhole(calls, head.headers, form, body, client),
            trace,
          );
          const { name: model } = found.model;
          if (trace === undefined) return { reply, requestId, model };
          trace.end(reply.status);
          return { reply: withHeaders(reply, { traceresponse: trace.traceresponse }), requestId, model };
        };
        if (budget === undefined) return answered;
        return async (body, client) => {
          const { reply, ...rest } = await answered(body, client);
          return { reply: withHeaders(reply, budget.headers ?? {}), ...rest };
        };
      },
    },
  };
}

/** @returns a function that runs a handler, and answers its failures */
function answering(onBug: DirectOptions["onBug"]) {
  return async <T>({ headers, target }: Asking, run: () => Promise<Reply | T>, trace?: RequestTrace) => {
    const requestId = chooseRequestId(headers);
    try {
      return { reply: await run(), requestId };
    } catch (error) {
      trace?.failed(codeOf(error));
      if (!isRefusal(error)) onBug(error, target, requestId);
      return { reply: errorReply(error), requestId };
    }
  };
}

/** @returns the request's trace, if the request is sampled, and the calls that the trace follows */
function traced({ frontDoor }: Pick<DirectOptions, "frontDoor">, { headers }: Asking, found: CallTerms) {
  if (frontDoor === undefined) return { calls: found, trace: undefined };
  const path = found.version === undefined ? PATHS.newest : PATHS.named;
  const startAt = performance.now();
  const { name: model } = found.model;
  const trace = frontDoor.begin({
    method: "POST",
    headers,
    path,
    httpVersion: "1.1",
    protocol: "kserve",
    model,
    startAt,
  });
  if (trace === undefined) return { calls: found, trace };
  return { calls: { ...found, inference: new TracedInference(found.inference, trace) }, trace };
}
