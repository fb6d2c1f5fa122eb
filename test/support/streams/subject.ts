/**
 * Plain subscribers of the public subjects, like any client's. A subscriber sees only the messages
 * that arrive while it listens.
 */
import { connect } from "nats";
import { BUCKETS } from "../fleet/profile.js";
import { Signal } from "#shared/signal.js";
import { logKey, tokenSubject } from "#shared/queue/keys.js";
import { neverAhead, type StreamViolation } from "./check.js";
import { addressOf } from "./stored.js";
import type { KeyReader } from "../fleet/store.js";

export interface Subscriber {
  /** Messages in the order of their arrival. */
  readonly records: readonly string[];
  close(): Promise<void>;
}

/** Resolves when the NATS server knows of the subscription. */
export async function subscribeTo(natsUrl: string, id: string): Promise<Subscriber> {
  const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const records: string[] = [];
  connection.subscribe(tokenSubject(addressOf(id)), {
    callback: (error, message) => {
      if (error === null) records.push(message.string());
    },
  });
  await connection.flush();
  return { records, close: () => connection.close() };
}

export interface SubjectWatch {
  /** How many messages the watch looked up in the log. */
  readonly checked: () => number;
  readonly violations: readonly StreamViolation[];
  /** Resolves when the watch has judged all messages. */
  stop(): Promise<void>;
}

/**
 * Most lookups at a time. Beyond that, the watch skips messages, because a late look proves little.
 */
const MOST_LOOKUPS = 64;

/**
 * Watches all messages on NATS, and finds records that are on NATS before they are in the log. The
 * watch survives outages of NATS and Redis. It skips a message whose lookup fails, because that
 * proves nothing.
 */
export async function watchSubjects(natsUrl: string, redis: Pick<KeyReader, "lindex">): Promise<SubjectWatch> {
  const connection = await connect({ servers: natsUrl, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  const violations: StreamViolation[] = [];
  const idle = new Signal();
  const lookups = { under: 0, done: 0 };

  async function look(subject: string, bytes: string): Promise<void> {
    const [, , tenant = "", model = "", request = ""] = subject.split(".");
    const index = Number(/^\{"index":(\d+)/.exec(bytes)?.[1]);
    lookups.under++;
    try {
      // The subject does not name the bucket of a conversation's turn.
      const keys = Array.from({ length: BUCKETS }, (_, bucket) => logKey({ bucket, model, tenant, request }));
      const found = await Promise.all(keys.map((key) => redis.lindex(key, index)));
      const logged = found.find((record) => record !== null);
      lookups.done++;
      violations.push(...neverAhead({ stream: request, index, bytes, logged }));
    } catch {
      // Redis is down: no verdict on this message.
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
