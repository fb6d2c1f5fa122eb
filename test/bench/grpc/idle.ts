/** Streams that are open and send nothing. */
import { readFileSync } from "node:fs";
import { connect, type ClientHttp2Session } from "node:http2";
import { Redis } from "ioredis";
import type { BenchFleet } from "../support/fleet.js";

export interface IdleCost {
  /** Memory of the gateway for a stream, in KB. */
  readonly kilobytes: number;
  /** Commands that Redis runs in a second, over those without streams. */
  readonly commands: number;
  readonly checked: number;
  readonly wrong: number;
}

const CONNECTIONS = 100;
const STREAMS_EACH = 100;
const WATCHED_MS = 5_000;

export async function measureIdle({ grpcPort, redis, processes }: BenchFleet): Promise<IdleCost> {
  const gateway = processes["gateway"]?.pid ?? 0;
  const connection = new Redis(redis.url);
  const commands = async (): Promise<number> => {
    const count = async () => Number(/total_commands_processed:(\d+)/.exec(await connection.info("stats"))?.[1]);
    const before = await count();
    await pause(WATCHED_MS);
    return ((await count()) - before) / (WATCHED_MS / 1_000);
  };
  try {
    const quiet = await commands();
    const before = residentKb(gateway);
    const sessions: ClientHttp2Session[] = [];
    let open = 0;
    for (let i = 0; i < CONNECTIONS; i++) {
      const session = connect(`http://127.0.0.1:${grpcPort}`);
      session.on("error", () => undefined);
      sessions.push(session);
      await new Promise((resolve) => session.once("remoteSettings", resolve));
      for (let j = 0; j < STREAMS_EACH; j++) {
        const stream = session.request({
          ":method": "POST",
          ":path": "/inference.GRPCInferenceService/ModelStreamInfer",
          "content-type": "application/grpc",
          te: "trailers",
        });
        stream.on("error", () => undefined);
        stream.on("close", () => open--);
        open++;
      }
      // An answered ping shows that the gateway has the streams before it.
      await new Promise((resolve) => session.ping(resolve));
    }
    const more = await commands();
    const all = CONNECTIONS * STREAMS_EACH;
    const kilobytes = (residentKb(gateway) - before) / all;
    const stayed = open;
    for (const session of sessions) session.destroy();
    return { kilobytes, commands: more - quiet, checked: all, wrong: all - stayed };
  } finally {
    connection.disconnect();
  }
}

function residentKb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
