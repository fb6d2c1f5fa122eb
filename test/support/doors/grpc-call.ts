/** The door of ModelInfer. */
import { GrpcClient, type Answer } from "../../protocols/grpc/client.js";
import type { Ending } from "./ask.js";
import type { Call } from "./call.js";
import { failure, tenantHeader, type Attempt, type Door, type DoorTerms } from "./door.js";
import { messageOf, soonBack, toldBy } from "./grpc-message.js";

/** A client that leaves does so within this time after its call, in ms. */
const LEAVES_WITHIN_MS = 30;

export class GrpcCallDoor implements Door {
  readonly #terms: DoorTerms;
  readonly #clients = new Map<string, GrpcClient>();

  constructor(terms: DoorTerms) {
    this.#terms = terms;
  }

  async attempt(gateway: string, call: Call): Promise<Attempt> {
    const { random, leaves, attemptMs } = this.#terms;
    const key = call.unkeyed === true ? {} : { "idempotency-key": call.request };
    const answer = await this.#client(gateway).call("ModelInfer", messageOf(call), {
      headers: { ...key, ...tenantHeader(this.#terms, call) },
      signal: AbortSignal.timeout(random.chance(leaves) ? random.between(1, LEAVES_WITHIN_MS) : attemptMs),
    });
    const hint = Number(answer.trailers["grpc-retry-pushback-ms"]);
    return { ending: endingOf(answer), hintMs: Number.isFinite(hint) ? hint : undefined };
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  #client(gateway: string): GrpcClient {
    const open = this.#clients.get(gateway) ?? new GrpcClient(gateway, soonBack);
    this.#clients.set(gateway, open);
    return open;
  }
}

function endingOf({ message, status, details, trailers }: Answer): Ending {
  if (message === undefined) {
    const code = trailers["baton-code"];
    // Without a code the status comes from the connection, or from the client's own end.
    return typeof code === "string" ? failure(code) : { kind: "unknown", why: `grpc ${status} ${details}` };
  }
  const { request, version, output = "" } = toldBy(message);
  return { kind: "ok", output, echoedId: request, version };
}
