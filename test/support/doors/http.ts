/** The door of infer over HTTP, with tensors as JSON. */
import type { Ending } from "./ask.js";
import type { Call } from "./call.js";
import { failure, tenantHeader, type Attempt, type Door, type DoorTerms } from "./door.js";
import { keepAliveAgent, post, type Answer } from "./exchange.js";

export class HttpDoor implements Door {
  readonly #terms: DoorTerms;
  readonly #agent = keepAliveAgent();

  constructor(terms: DoorTerms) {
    this.#terms = terms;
  }

  async attempt(gateway: string, call: Call): Promise<Attempt> {
    const key = call.unkeyed === true ? {} : { "idempotency-key": call.request };
    let answer: Answer;
    try {
      answer = await post({
        url: `${gateway}/v2/models/${call.model}/infer`,
        headers: { ...key, ...tenantHeader(this.#terms, call) },
        body: bodyOf(call),
        timeoutMs: this.#terms.attemptMs,
        agent: this.#agent,
      });
    } catch (error) {
      return { ending: { kind: "unknown", why: error instanceof Error ? error.message : String(error) } };
    }
    return { ending: endingOf(answer), hintMs: answer.retryAfterMs };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Concatenates integers by hand, because JSON.stringify cannot write those above 2^53. */
function bodyOf({ request, parameters, inputs }: Call): string {
  const written = Object.entries(parameters).map(([name, value]) => {
    const text = typeof value === "bigint" ? String(value) : JSON.stringify(value);
    return `${JSON.stringify(name)}:${text}`;
  });
  const tensors = inputs.map(({ name, datatype, shape, data }) => {
    return `{"name":"${name}","datatype":"${datatype}","shape":[${shape.join()}],"data":[${data.join()}]}`;
  });
  return `{"id":${JSON.stringify(request)},"parameters":{${written.join()}},"inputs":[${tensors.join()}]}`;
}

export function endingOf({ status, body }: Answer): Ending {
  if (status === 200) {
    const echoedId = /"id"\s*:\s*"([^"]*)"/.exec(body)?.[1];
    const version = /"model_version"\s*:\s*"([^"]*)"/.exec(body)?.[1];
    return { kind: "ok", output: outputOf(body), echoedId, ...(version === undefined ? {} : { version }) };
  }
  return failure(/"code"\s*:\s*"([^"]*)"/.exec(body)?.[1] ?? "none", status);
}

/**
 * The data of all outputs as text, digit by digit, because a parsed number would lose the low bits
 * of an INT64.
 */
function outputOf(body: string): string {
  return [...body.matchAll(/"data"\s*:\s*\[([^\]]*)\]/g)]
    .map((found) => found[1]?.replaceAll(/\s/g, "") ?? "")
    .join("|");
}
