/**
 * A client that follows the rules and records each attempt. The client repeats a request under its
 * `Idempotency-Key`, from gateway to gateway, until there is an outcome or its patience ends.
 */
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { Random } from "../fleet/random.js";
import type { Ask, Ending, History } from "./history.js";
import { keepAliveAgent, post, type Answer } from "./http.js";

export interface ClientSettings {
  readonly name: string;
  readonly history: History;
  /** The gateways to choose from now. */
  readonly urls: () => readonly string[];
  readonly random: Random;
  /** The longest wait for a single answer. */
  readonly attemptMs?: number;
  /** Counted from the first submit on. A request without an outcome by then stays unknown. */
  readonly patienceMs?: number;
  /** The name of the header for the tenant. If undefined, the client sends no tenant. */
  readonly tenantHeader?: string;
}

/** A request with its exact body, as text because ids go up to 2^64−1. */
export interface Call extends Ask {
  readonly body: string;
}

/**
 * How long a client repeats a request until there is an outcome, counted from the first submit on,
 * unless the settings say otherwise. Requests ask the fleet for a deadline of the same length. If
 * five of six workers are down at a time on a slow machine, the usual minute passes although
 * nothing is lost.
 */
export const PATIENCE_MS = 150_000;

/**
 * The client's longest pause, even if the server's `Retry-After` asks for more, because this client
 * is there to press.
 */
const MAX_PAUSE_MS = 250;

export class RecordingClient {
  readonly #settings: ClientSettings & Required<Pick<ClientSettings, "attemptMs" | "patienceMs">>;
  readonly #agent = keepAliveAgent();
  readonly #attempts = new Map<string, number>();

  constructor(settings: ClientSettings) {
    this.#settings = { attemptMs: 10_000, patienceMs: PATIENCE_MS, ...settings };
  }

  /**
   * Asks until there is an outcome. A second call with the same request reads the outcome again.
   */
  async ask(call: Call): Promise<Ending> {
    const { history, urls, random, patienceMs } = this.#settings;
    const giveUpAt = performance.now() + patienceMs;
    let at = random.between(0, urls().length - 1);
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const now = urls();
      const gateway = now[at % now.length] ?? "";
      const attempt = this.#next(call.request);
      const { body, ...ask } = call;
      const stamp = { client: this.#settings.name, attempt };
      history.record({ ...stamp, kind: "submit", at: history.now(), gateway, ask });
      const { ending, hintMs } = await this.#attempt(gateway, call, body);
      history.record({ ...stamp, at: history.now(), request: call.request, ...ending });
      if (ending.kind !== "unknown" || performance.now() > giveUpAt) return ending;
      at += 1;
      const waitMs = Math.min(hintMs ?? pauseMs, MAX_PAUSE_MS) * (0.5 + Math.random() / 2);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #next(request: string): number {
    const attempt = (this.#attempts.get(request) ?? 0) + 1;
    this.#attempts.set(request, attempt);
    return attempt;
  }

  #tenantOf({ tenant }: Ask): Record<string, string> {
    const { tenantHeader } = this.#settings;
    return tenantHeader === undefined || tenant === undefined ? {} : { [tenantHeader]: tenant };
  }

  async #attempt(gateway: string, call: Call, body: string): Promise<{ ending: Ending; hintMs?: number | undefined }> {
    let answer: Answer;
    try {
      answer = await post({
        url: `${gateway}/v2/models/${call.model}/infer`,
        headers: { "idempotency-key": call.request, ...this.#tenantOf(call) },
        body,
        timeoutMs: this.#settings.attemptMs,
        agent: this.#agent,
      });
    } catch (error) {
      return { ending: { kind: "unknown", why: error instanceof Error ? error.message : String(error) } };
    }
    return { ending: endingOf(answer), hintMs: answer.retryAfterMs };
  }
}

/** Only a refusal that says "later" leaves the request open. Every other answer is an outcome. */
export function endingOf({ status, body }: Answer): Ending {
  if (status === 200) {
    const echoedId = /"id"\s*:\s*"([^"]*)"/.exec(body)?.[1];
    const version = /"model_version"\s*:\s*"([^"]*)"/.exec(body)?.[1];
    return { kind: "ok", output: outputOf(body), echoedId, ...(version === undefined ? {} : { version }) };
  }
  const code = /"code"\s*:\s*"([^"]*)"/.exec(body)?.[1] ?? "none";
  const later = isErrorCode(code) && errorKinds[code].retry && (status === 503 || status === 429);
  return later ? { kind: "unknown", why: `${status} ${code}` } : { kind: "fail", status, code };
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
