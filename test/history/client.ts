/**
 * A client that follows the rules and writes everything down: it repeats a request under its `Idempotency-Key`, from gateway to gateway,
 * until it has an outcome or its patience ends.
 */
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { Random } from "../setup/random.js";
import type { Ask, Ending, History } from "./history.js";
import { keepAliveAgent, post, type Answer } from "./http.js";

export interface ClientSettings {
  readonly name: string;
  readonly history: History;
  /** Where to ask now. */
  readonly urls: () => readonly string[];
  readonly random: Random;
  /** Longest wait for one answer. */
  readonly attemptMs?: number;
  /** From the first submit on; past it a request stays unknown. */
  readonly patienceMs?: number;
}

/** A request with its body; `sequenceId` is a JSON literal, so that ids up to 2^64−1 are sent as they are. */
export interface Call extends Ask {
  readonly body: string;
}

/** The longest of the server's hints that this client heeds: it is here to press. */
const MAX_PAUSE_MS = 250;

export class RecordingClient {
  readonly #settings: Required<ClientSettings>;
  readonly #agent = keepAliveAgent();
  readonly #attempts = new Map<string, number>();

  constructor(settings: ClientSettings) {
    this.#settings = { attemptMs: 10_000, patienceMs: 60_000, ...settings };
  }

  /** Asks until there is an outcome. A second call with the same request reads it again. */
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

  async #attempt(gateway: string, call: Call, body: string): Promise<{ ending: Ending; hintMs?: number | undefined }> {
    let answer: Answer;
    try {
      answer = await post({
        url: `${gateway}/v2/models/${call.model}/infer`,
        headers: { "idempotency-key": call.request },
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

/** Only a refusal that says "later" leaves the request open; every other answer is its outcome. */
export function endingOf({ status, body }: Answer): Ending {
  if (status === 200) return { kind: "ok", output: outputOf(body), echoedId: /"id"\s*:\s*"([^"]*)"/.exec(body)?.[1] };
  const code = /"code"\s*:\s*"([^"]*)"/.exec(body)?.[1] ?? "none";
  const later = isErrorCode(code) && errorKinds[code].retry && (status === 503 || status === 429);
  return later ? { kind: "unknown", why: `${status} ${code}` } : { kind: "fail", status, code };
}

/** All outputs' data, exactly as written: a parsed number would lose the low bits of an INT64. */
function outputOf(body: string): string {
  return [...body.matchAll(/"data"\s*:\s*\[([^\]]*)\]/g)]
    .map((found) => found[1]?.replaceAll(/\s/g, "") ?? "")
    .join("|");
}
