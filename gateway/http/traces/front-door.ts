/** Begins the traces of sampled requests, before any part of the gateway looks at their bodies. */
import type { IncomingHttpHeaders } from "node:http";
import { decide } from "#shared/trace/decision.js";
import type { Tracer } from "#shared/trace/span.js";
import { RequestTrace } from "../../trace/request-trace.js";

/** The parts of a request that its trace names. */
export interface Arrival {
  readonly headers: IncomingHttpHeaders;
  /** A declared path, such as `/v2/models/:model/infer`. */
  readonly path: string;
  readonly httpVersion: string;
  readonly protocol: "kserve" | "openai";
  /** On `performance.now()`'s clock. */
  readonly startAt: number;
}

export class FrontDoor {
  readonly #tracer: Tracer;
  readonly #sample: number;

  /** @param sample the share of requests to trace, if the caller does not decide */
  constructor(tracer: Tracer, sample: number) {
    this.#tracer = tracer;
    this.#sample = sample;
  }

  /** @returns undefined for a request that is not sampled */
  begin({ headers, path, httpVersion, protocol, startAt }: Arrival): RequestTrace | undefined {
    const sampled = decide(headers, this.#sample);
    if (sampled === undefined) return undefined;
    const route = path.replaceAll(/:(\w+)/g, "{$1}");
    return new RequestTrace(this.#tracer, sampled, {
      name: `POST ${route}`,
      startAt,
      attributes: {
        "http.request.method": "POST",
        "http.route": route,
        "network.protocol.version": httpVersion,
        "baton.protocol": protocol,
      },
    });
  }
}
