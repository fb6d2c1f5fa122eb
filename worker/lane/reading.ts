/**
 * How a worker reads from Redis: over one connection to a single server, and over one connection
 * for each bucket in a Cluster, because a read stays on the node that serves its slot.
 */
import { connectBlockingReader, type RedisClient, type RedisSettings } from "#shared/redis/connect.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import type { LanesByKey } from "#shared/queue/work/stream.js";
import { Reader, type Source } from "./reader.js";

/** Reads new steps for models until it is stopped. */
export interface Reading {
  /** To be notified when a model may have room for more. */
  readonly room: { notify(): void };
  /** Reads for this model, too, from now on. */
  add(source: Source): void;
  /** See `Intake`. */
  doubt(): void;
  /** Stops. Waits for reads that Redis holds blocked, because they may still bring entries. */
  stop(): Promise<void>;
}

/**
 * @param commands a connection for short commands
 * @param link the address of Redis, and the worker's name
 */
export function beginToRead(commands: RedisClient, link: RedisSettings, buckets: number): Reading {
  const readerOf = (key?: string) => {
    const redis = connectBlockingReader(link, key === undefined ? undefined : { key, commands });
    return new Reader({ redis, commands, consumer: link.name, log: link.log });
  };
  if (!commands.isCluster) return readerOf();
  const readers = Array.from({ length: buckets }, (_, bucket) => readerOf(bucketTag(bucket)));
  return {
    room: {
      notify() {
        for (const reader of readers) reader.room.notify();
      },
    },
    add({ lanes, ...source }) {
      for (const [bucket, reader] of readers.entries()) reader.add({ lanes: inBucket(lanes, bucket), ...source });
    },
    doubt() {
      for (const reader of readers) reader.doubt();
    },
    async stop() {
      await Promise.all(readers.map((reader) => reader.stop()));
    },
  };
}

function inBucket(lanes: LanesByKey, bucket: number): LanesByKey {
  return new Map([...lanes].filter(([, lane]) => lane.bucket === bucket));
}
