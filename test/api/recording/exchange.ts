/** Sends one request to a gateway byte for byte, and reads the whole answer byte for byte. */
import { request, type Agent } from "node:http";
import { ENDLESS } from "../../support/answer-text.js";

export interface Question {
  readonly method: string;
  /** The target of the request, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes and texts are sent as they are, objects as JSON. */
  readonly body?: Buffer | string | object;
}

export interface Answer {
  readonly status: number;
  /** In the order of their names, without `date`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Longer than any answer of a healthy fleet takes. */
const PATIENCE_MS = 60_000;

/**
 * @param agent keeps connections; without an agent each exchange has a connection of its own
 * @throws Error if the whole answer has not come within a minute
 */
export function exchange(
  url: string,
  { method, path, headers = {}, body }: Question,
  agent: Agent | false = false,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, path, headers, agent, timeout: PATIENCE_MS }, (response) => {
      const pieces: Buffer[] = [];
      const isEndless = response.statusCode === 200 && path.split("?")[0] === ENDLESS;
      response.on("data", (piece: Buffer) => {
        pieces.push(piece);
        if (isEndless) end();
      });
      response.on("error", (error) => isEndless || reject(error));
      response.on("end", () => end());
      const end = (): void => {
        if (isEndless) sent.destroy();
        const { date: _, ...rest } = response.headers;
        const named = Object.entries(rest).map(([name, value]) => [name, String(value)] as const);
        resolve({
          status: response.statusCode ?? 0,
          headers: Object.fromEntries(named.toSorted(([one], [other]) => (one < other ? -1 : 1))),
          body: Buffer.concat(pieces),
        });
      };
    });
    sent.on("timeout", () => sent.destroy(new Error(`${method} ${path} was not answered in time`)));
    sent.on("error", reject);
    sent.end(bytesOf(body));
  });
}

function bytesOf(body: Question["body"]): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(body === undefined || typeof body === "string" ? (body ?? "") : JSON.stringify(body));
}
