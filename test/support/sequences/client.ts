/**
 * A client that follows the rules and records each attempt. The client repeats a request under its
 * `Idempotency-Key`, from gateway to gateway, until there is an outcome or its patience ends.
 */
import { errorKinds } from "#shared/errors.js";
import type { Ending } from "../doors/ask.js";
import { askOf, type Call } from "../doors/call.js";
import type { Door, DoorTerms, Part } from "../doors/door.js";
import { doors, type DoorName } from "../doors/doors.js";
import type { Random } from "../fleet/random.js";
import type { History } from "./history.js";

export interface ClientSettings extends Partial<Pick<DoorTerms, "attemptMs" | "tenantHeader" | "leaves">> {
  readonly name: string;
  readonly history: History;
  /** The gateways to choose from now, by their addresses for the door. */
  readonly urls: () => readonly string[];
  readonly random: Random;
  /** HTTP if absent. */
  readonly door?: DoorName;
  /** Counted from the first submit on. A request without an outcome by then stays unknown. */
  readonly patienceMs?: number;
}

/**
 * How long a client repeats a request until there is an outcome, counted from the first submit on,
 * unless the settings say otherwise. Requests ask the fleet for a deadline of the same length. If
 * five of six workers are down at a time on a slow machine, the usual minute passes although
 * nothing is lost; if others use the machine, too, so do two minutes.
 */
export const PATIENCE_MS = 300_000;
/** The longest wait for a sign of an answer. */
const ATTEMPT_MS = 10_000;

/**
 * The client's longest pause, even if the server's `Retry-After` asks for more, because this client
 * is there to press.
 */
const MAX_PAUSE_MS = 250;

export class RecordingClient {
  readonly #settings: ClientSettings & Required<Pick<ClientSettings, "patienceMs">>;
  readonly #door: Door;
  readonly #attempts = new Map<string, number>();

  constructor(settings: ClientSettings) {
    this.#settings = { patienceMs: PATIENCE_MS, ...settings };
    const { name: client, history, random, door = "http", attemptMs = ATTEMPT_MS, tenantHeader, leaves = 0 } = settings;
    const onStray = (request: string) => {
      const stray = { kind: "fail", status: 0, code: "answered once more" } as const;
      history.record({ client, attempt: 0, at: history.now(), request, ...stray });
    };
    this.#door = doors[door].open({ attemptMs, tenantHeader, leaves, random: random.fork("door"), onStray });
  }

  /**
   * Asks until there is an outcome. A second call with the same request reads the outcome again.
   */
  async ask(call: Call): Promise<Ending> {
    const { history, urls, random, patienceMs } = this.#settings;
    const giveUpAt = performance.now() + patienceMs;
    const heard: Part[] = [];
    let at = random.between(0, urls().length - 1);
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const now = urls();
      const gateway = now[at % now.length] ?? "";
      const attempt = this.#next(call.request);
      const stamp = { client: this.#settings.name, attempt };
      history.record({ ...stamp, kind: "submit", at: history.now(), gateway, ask: askOf(call) });
      const { ending: told, hintMs } = await this.#door.attempt(gateway, call, heard);
      const ending = judged(call, told, attempt);
      history.record({ ...stamp, at: history.now(), request: call.request, ...ending });
      if (ending.kind !== "unknown" || performance.now() > giveUpAt) return ending;
      at += 1;
      const waitMs = Math.min(hintMs ?? pauseMs, MAX_PAUSE_MS) * (0.5 + Math.random() / 2);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  close(): void {
    this.#door.close();
  }

  #next(request: string): number {
    const attempt = (this.#attempts.get(request) ?? 0) + 1;
    this.#attempts.set(request, attempt);
    return attempt;
  }
}

/**
 * A step that arrives before its predecessor comes again. A request that a gateway has refused at
 * its first attempt has had no effect, so its client may leave it at that.
 */
export function judged({ numbered, mayFail = [] }: Call, ending: Ending, attempt: number): Ending {
  if (ending.kind === "fail" && ending.code === "ahead_of_state" && numbered === true)
    return { kind: "unknown", why: ending.code };
  if (ending.kind !== "unknown" || ending.refusal === undefined || attempt > 1) return ending;
  const { refusal } = ending;
  return mayFail.includes(refusal)
    ? { kind: "fail", status: errorKinds[refusal].status, code: refusal, refused: true }
    : ending;
}
