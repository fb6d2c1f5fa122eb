/** One HTTP exchange without retries and redirects, so the history knows of every attempt. */
import { Agent, request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly retryAfterMs: number | undefined;
}

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly agent: Agent;
}

/**
 * Closes connections after 3 s idle, before the gateway does so after 5 s. If both ends give up a
 * connection at once, a request meets a reset.
 */
export function keepAliveAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 256, scheduling: "lifo", timeout: 3_000 });
}

/** Rejects if the exchange is cut, refused or late. The outcome is then unknown. */
export function post({ url, headers, body, timeoutMs, agent }: Post): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(url, {
      method: "POST",
      agent,
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers },
    });
    const timer = setTimeout(() => call.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    call.on("error", fail);
    call.on("response", (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", fail);
      response.on("end", () => {
        clearTimeout(timer);
        const after = Number(response.headers["retry-after"]);
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(parts).toString("utf8"),
          retryAfterMs: Number.isFinite(after) ? after * 1_000 : undefined,
        });
      });
    });
    call.end(body);
  });
}
