/**
 * Asks one of the process's own paths, as a client would over HTTP but without a connection: so a
 * line is answered by the very handlers that answer requests, and nobody else can reach these.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import inject from "light-my-request";
import type { GatewayApp } from "../../app.js";
import { tenantFrom } from "../../http/tenant.js";

/** Whose a line is, which the runner alone says. */
const TENANT_HEADER = "baton-line-tenant";

export const tenantOfLine = tenantFrom(TENANT_HEADER);

/** How long a line may take that does not say it, in ms: as long as its batch may. */
export const LINE_DEADLINE_MS = 7 * 86_400_000;

export interface LineRequest {
  readonly tenant: string;
  readonly path: string;
  readonly requestId: string;
  /** The same for a line, whichever run asks it, and however often. */
  readonly key: string;
  readonly body: Buffer;
}

export interface LineAnswer {
  readonly status: number;
  /** Undefined where it is no JSON. */
  readonly body: Buffer | undefined;
}

export class LineAsker {
  readonly #dispatch: (incoming: IncomingMessage, outgoing: ServerResponse) => void;

  constructor(app: GatewayApp) {
    const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
    this.#dispatch = (incoming, outgoing) => {
      if (!app.direct(incoming, outgoing)) void listener(incoming, outgoing);
    };
  }

  async ask({ tenant, path, requestId, key, body }: LineRequest): Promise<LineAnswer> {
    const { statusCode, headers, rawPayload } = await inject(this.#dispatch, {
      method: "POST",
      url: path,
      headers: {
        host: "baton",
        "content-type": "application/json",
        "content-length": String(body.length),
        "x-request-id": requestId,
        "idempotency-key": key,
        [TENANT_HEADER]: tenant,
      },
      payload: body,
    });
    const isJson = /^application\/json\b/.test(String(headers["content-type"]));
    return { status: statusCode, body: isJson ? rawPayload : undefined };
  }
}
