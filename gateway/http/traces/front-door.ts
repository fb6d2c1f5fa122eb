/** Begins the traces of sampled requests, before any part of the gateway looks at their bodies. */
import type { IncomingHttpHeaders } from "node:http";
import { decide } from "#shared/trace/decision.js";
import type { Tracer } from "#shared/trace/span.js";
import type { TraceRates } from "../../trace/rates.js";
import { RequestTrace } from "../../trace/request-trace.js";

/** The parts of a request that its trace names. */
export interface Arrival {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** A declared path, such as `/v2/models/:model/infer`. */
  readonly path: string;
  readonly httpVersion: string;
  readonly protocol: "kserve" | "openai" | "jobs" | "own" | "grpc";
  /** Undefined if the request names no model. */
  readonly model: string | undefined;
  /** On `performance.now()`'s clock. */
  readonly startAt: number;
}

export class FrontDoor {
  readonly #tracer: Tracer;
  readonly #rates: TraceRates;

  constructor(tracer: Tracer, rates: TraceRates) {
    this.#tracer = tracer;
    this.#rates = rates;
  }

  /** @returns undefined for a request that is not sampled */
  begin({ method, headers, path, httpVersion, protocol, model, startAt }: Arrival): RequestTrace | undefined {
    const sample = this.#rates.sampleOf(model);
    const sampled = sample === undefined ? undefined : decide(headers, sample);
    if (sampled === undefined) return undefined;
    const route = path.replaceAll(/:(\w+)/g, "{$1}");
    return new RequestTrace(this.#tracer, sampled, {
      name: `${method} ${route}`,
      startAt,
      attributes: {
        "http.request.method": method,
        "http.route": route,
        "network.protocol.version": httpVersion,
        "baton.protocol": protocol,
      },
    });
  }
}
