/** Plain subscribers of the public subjects, as anybody may be: they see what is published while they listen, and nothing else. */
import { connect } from "nats";
import type { Redis } from "ioredis";
import { Signal } from "#shared/signal.js";
import { DEFAULT_TENANT, logKey, tokenSubject } from "#shared/keys.js";
import { neverAhead, type StreamViolation } from "./check.js";
import { addressOf } from "./stored.js";

export interface Subscriber {
  /** Messages in the order of their arrival. */
  readonly records: readonly string[];
  close(): Promise<void>;
}

/** Resolves when the server has the interest. */
export async function subscribeTo(natsUrl: string, id: string): Promise<Subscriber> {
  const { lane, request } = addressOf(id);
  const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const records: string[] = [];
  connection.subscribe(tokenSubject(DEFAULT_TENANT, lane, request), {
    callback: (error, message) => {
      if (error === null) records.push(message.string());
    },
  });
  await connection.flush();
  return { records, close: () => connection.close() };
}

export interface SubjectWatch {
  /** Messages that were looked up in the log. */
  readonly checked: () => number;
  readonly violations: readonly StreamViolation[];
  /** Resolves when all that was seen is judged. */
  stop(): Promise<void>;
}

/** Lookups under way; past that messages go by, since a late look proves little. */
const MOST_LOOKUPS = 64;

/** Watches everything that is published (I8). The watch survives NATS and Redis; what cannot be looked up proves nothing and is left out. */
export async function watchSubjects(natsUrl: string, redis: Redis): Promise<SubjectWatch> {
  const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const violations: StreamViolation[] = [];
  const idle = new Signal();
  const lookups = { under: 0, done: 0 };

  async function look(subject: string, bytes: string): Promise<void> {
    const [, , , model = "", request = ""] = subject.split(".");
    const lane = { model: model.replaceAll("%2E", "."), version: "1", shard: 0 };
    const index = Number(/^\{"index":(\d+)/.exec(bytes)?.[1]);
    lookups.under++;
    try {
      const logged = await redis.lindex(logKey(lane, request), index);
      lookups.done++;
      violations.push(...neverAhead({ stream: request, index, bytes, logged: logged ?? undefined }));
    } catch {
      // Redis is away: this one is not judged.
    }
    lookups.under--;
    idle.notify();
  }

  connection.subscribe("baton.v1.>", {
    callback: (error, message) => {
      if (error !== null || lookups.under >= MOST_LOOKUPS || message.data.length === 0) return;
      void look(message.subject, message.string());
    },
  });
  await connection.flush();
  return {
    checked: () => lookups.done,
    violations,
    async stop() {
      await connection.close();
      while (lookups.under > 0) await idle.wait(Infinity);
    },
  };
}
