/**
 * Sends a line to one of the process's own paths, as a client would over HTTP, but without a
 * connection. So the same handlers answer lines and requests, and clients cannot reach these paths.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import inject from "light-my-request";
import type { GatewayApp } from "../../app.js";
import { tenantFrom } from "../../http/tenant.js";

/** The tenant of a line. Only the runner sends this header. */
const TENANT_HEADER = "baton-line-tenant";

export const tenantOfLine = tenantFrom(TENANT_HEADER);

/** The deadline of a line without a deadline, in ms: the longest time of a batch. */
export const LINE_DEADLINE_MS = 7 * 86_400_000;

export interface LineRequest {
  readonly tenant: string;
  readonly path: string;
  readonly requestId: string;
  /** The same for each attempt and each run of a line. */
  readonly key: string;
  readonly body: Buffer;
}

export interface LineAnswer {
  readonly status: number;
  /** Undefined if the answer is not JSON. */
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
