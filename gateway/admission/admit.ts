/** The typed wrapper of admit.lua: the only way into a queue. */
import { laneKeys, outcomeKey, sequenceKeys, type Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, list, text, bytes, word, type Arg } from "#shared/redis/script.js";

export type Admission =
  | { readonly said: "admitted" }
  /** Admitted before under the same key. No outcome yet while `outcome` is undefined. */
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } | undefined }
  | { readonly said: "mismatch" | "queue-full" | "start-required" | "backlog-full" | "too-many-sequences" };

/** The same for all requests of one call. */
export interface Terms {
  /** Workers send outcomes to it. */
  readonly gateway: string;
  readonly limits: {
    readonly queue: number;
    readonly waitingPerSequence: number;
    readonly liveSequences: number;
  };
}

/** One request as the script takes it. */
export interface Applicant {
  readonly request: string;
  readonly frame: Buffer;
  /** Of what was asked; empty without an Idempotency-Key. */
  readonly digest: string;
  readonly outcomeTtlMs: number;
  readonly deadlineMs: number;
  /** How long somebody surely wants the stream; 0: it runs for whoever reads. */
  readonly attendedMs: number;
  readonly sequence: { readonly name: string; readonly start: boolean; readonly end: boolean } | undefined;
}

const words = ["admitted", "mismatch", "queue-full", "start-required", "backlog-full", "too-many-sequences"] as const;

const script = defineScript(new URL("./admit.lua", import.meta.url), (reply) => list(reply).map(admission));

function admission(answer: unknown): Admission {
  if (!Array.isArray(answer)) return { said: word(answer, words) };
  const [first, kind, body] = list(answer);
  const said = word(first, ["known"]);
  return { said, outcome: text(kind) === "" ? undefined : { kind: text(kind), body: bytes(body) } };
}

/**
 * @returns one answer per applicant, in order. Safe to repeat for as long as the requests' records
 * are kept.
 */
export function admit(
  redis: RedisClient,
  lane: Lane,
  { gateway, limits }: Terms,
  applicants: readonly Applicant[],
): Promise<Admission[]> {
  const { ready, live } = laneKeys(lane);
  const keys: string[] = [ready, live];
  const args: Arg[] = [gateway, limits.queue, limits.waitingPerSequence, limits.liveSequences];
  for (const { request, frame, digest, outcomeTtlMs, deadlineMs, attendedMs, sequence } of applicants) {
    keys.push(outcomeKey(lane, request));
    args.push(request, frame, digest, outcomeTtlMs, deadlineMs, attendedMs);
    if (sequence === undefined) args.push("", 0);
    else {
      const { seq, state, wait } = sequenceKeys(lane, sequence.name);
      keys.push(seq, state, wait);
      args.push(sequence.name, (sequence.start ? 1 : 0) + (sequence.end ? 2 : 0));
    }
  }
  return script(redis, keys, args);
}
