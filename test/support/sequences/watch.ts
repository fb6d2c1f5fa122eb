/**
 * Samples a run: how many steps of each sequence are done, and the resources of each process.
 * Outages leave gaps, not errors.
 */
import { setInterval as every } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Fleet } from "../fleet/fleet.js";
import { resourcesOfEach } from "../brokers/resources.js";
import type { CommitSample, ResourceSample } from "./facts.js";
import { allKeys, labelOf } from "./floor.js";
import type { History } from "./history.js";
import { parseFacts } from "#shared/queue/pieces/sequence.js";

export interface Watch {
  readonly commits: CommitSample[];
  readonly resources: ResourceSample[];
  stop(): Promise<void>;
}

const COMMITS_EVERY_MS = 200;
const RESOURCES_EVERY_MS = 1_000;

export function watchFleet(fleet: Fleet, history: History): Watch {
  const commits: CommitSample[] = [];
  const resources: ResourceSample[] = [];
  const stopping = new AbortController();
  const connections = new Map(fleet.store.servers.map((server) => [server, impatient(server.url)]));
  const masters = async () => {
    const now = (await fleet.store.mastersNow()).flatMap((server) => connections.get(server) ?? []);
    return now.filter(({ status }) => status === "ready");
  };

  const loops = Promise.allSettled([
    loop(COMMITS_EVERY_MS, async () => {
      for (const redis of await masters()) commits.push(...(await sampleCommits(redis, history.now())));
    }),
    loop(RESOURCES_EVERY_MS, async () => {
      const at = history.now();
      for (const [name, value] of await sampleProcesses(fleet)) {
        resources.push({ at, name, what: "rssBytes", value: value.rssBytes });
        resources.push({ at, name, what: "descriptors", value: value.descriptors });
      }
      const pending = await fleet.nats.pendingBytes().catch(() => []); // NATS is down by plan
      resources.push({ at, name: "nats", what: "natsPendingBytes", value: Math.max(0, ...pending) });
      for (const redis of await masters()) {
        const used = /used_memory:(\d+)/.exec(await redis.info("memory"))?.[1];
        resources.push({ at, name: "redis", what: "usedMemoryBytes", value: Number(used) });
      }
    }),
  ]);

  async function loop(ms: number, sample: () => Promise<void>): Promise<void> {
    try {
      for await (const _ of every(ms, undefined, { signal: stopping.signal })) {
        await sample().catch((error: unknown) => {
          if (!isOutage(error)) throw error;
        });
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    }
  }

  return {
    commits,
    resources,
    async stop() {
      stopping.abort();
      const ended = await loops;
      for (const redis of connections.values()) redis.disconnect();
      for (const one of ended) if (one.status === "rejected") throw one.reason;
    },
  };
}

/** Commands fail at once while the server is down, because a late sample is useless. */
function impatient(url: string): Redis {
  const redis = new Redis(url, {
    protocol: 2,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: 2_000,
    retryStrategy: () => 100,
  });
  redis.on("error", () => undefined); // experiments plan outages
  return redis;
}

async function sampleCommits(redis: Redis, at: number): Promise<CommitSample[]> {
  const keys = await allKeys(redis, "seqs:*");
  const sequences = (await Promise.all(keys.map((key) => redis.hgetall(key)))).flatMap(Object.entries<string>);
  return sequences.map(([name, text]) => {
    const { done, at: version } = parseFacts(text);
    // A version's name consists of the entry, the process that ran the step, and the run.
    return { at, sequence: labelOf(name), done, worker: version.split(".")[1] ?? "", entry: version };
  });
}

async function sampleProcesses(fleet: Fleet) {
  const members = [...fleet.gateways.map(({ member }) => member), ...fleet.workers];
  const groups = await resourcesOfEach(members.map(({ process }) => process.pid));
  return members.flatMap(({ name }, i) => [...(groups[i]?.values() ?? [])].map((value) => [name, value] as const));
}

function isOutage(error: unknown): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return /closed|timed out|writeable|ECONN|LOADING|retries|EPIPE|MOVED|CLUSTERDOWN/i.test(text);
}
