/**
 * Redis comes back with less than it had acknowledged: as an older copy of its data, or as a
 * replica that was promoted before it had received everything. Gateways notice, report and serve on
 * by themselves.
 */
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { freePort } from "../../support/brokers/port.js";
import { Proxy } from "../../support/fleet/proxy.js";
import type { RunningProcess } from "../../support/brokers/process.js";
import { infoOf, onlineReplicas, settled, startRedisNode, type RedisNode } from "../../support/brokers/redis-node.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { add } from "../../edition/ask.js";
import { nth } from "../pace.js";

interface Said {
  readonly gone_back?: { readonly times: number; readonly lost_calls: number; readonly error: string };
}

const fleetSays = async (url: string) => (await (await fetch(`${url}/v2/fleet`)).json()) as Said;
const loggedBy = (process: RunningProcess) =>
  process.lines.filter(({ fields }) => fields["level"] === 50 && /gone back in time/.test(String(fields["msg"])));

describe("a Redis that is restored from an older copy", () => {
  const served = useFleet({ models: ["accumulate"], direct: true });

  it("is noticed though no request comes, and serves on", { timeout: 90_000 }, async () => {
    const { fleet, url } = served;
    const data = join(fleet.folder, "redis");
    const copy = join(fleet.folder, "older");
    const { process } = nth(fleet.gateways, 0).member;
    expect(await add(url, { sequence: 1, value: 20, start: true })).toMatchObject({ output: 20 });
    cpSync(data, copy, { recursive: true });
    expect(await add(url, { sequence: 1, value: 1 })).toMatchObject({ output: 21 });
    await fleet.redis.kill();
    await fleet.redis.restart();
    // A restart that kept everything is not reported.
    await expect.poll(async () => (await add(url, { sequence: 1, value: 1 })).status).toBe(200);
    expect((await fleetSays(url)).gone_back).toBeUndefined();

    await fleet.redis.kill();
    rmSync(data, { recursive: true });
    cpSync(copy, data, { recursive: true });
    await fleet.redis.restart();
    await expect.poll(() => loggedBy(process)).toHaveLength(1);
    const { gone_back: said } = await fleetSays(url);
    expect(said).toMatchObject({ times: 1, error: expect.stringMatching(/lost admissions/) as string });
    expect(said?.lost_calls).toBeGreaterThan(0);

    const start = () => add(url, { sequence: 2, value: 5, start: true });
    await expect.poll(async () => (await start()).output).toBe(5);
    expect(await add(url, { sequence: 2, value: 5 })).toMatchObject({ output: 10 });
    expect(loggedBy(process)).toHaveLength(1);
  });
});

describe("a replica that is promoted without what its primary has acknowledged", () => {
  let folder: string;
  let primary: RedisNode;
  let replica: RedisNode;
  let replication: Proxy;
  let fleet: Fleet;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-gone-back-"));
    primary = await startRedisNode("primary", () => ({}), folder);
    replication = await Proxy.start(primary.port);
    replica = await startRedisNode("replica", () => ({ replicaof: `127.0.0.1 ${replication.port}` }), folder);
    await settled(async () => (await onlineReplicas(primary)) === 1);
    fleet = await startFleet({ gateways: 0, workers: 0, models: ["accumulate"] });
  });
  afterAll(async () => {
    await fleet.dispose();
    await Promise.all([replica.dispose(), primary.dispose(), replication.dispose()]);
    rmSync(folder, { recursive: true, force: true });
  });

  it("is noticed", { timeout: 90_000 }, async () => {
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}`;
    // The address of the primary leads to the replica after its promotion.
    const line = await startLine(primary.port);
    const env = { BATON_REDIS_URL: `redis://127.0.0.1:${line.port}`, BATON_HTTP_PORT: port };
    const gateway = fleet.launch("bundled/gateway/main.js", env);
    fleet.launch("worker/supervisor.js", env);
    await until(async () => (await add(url, { sequence: 1, value: 1, start: true })).output === 1, 60_000);
    const offsetOf = (node: RedisNode) => infoOf(node.admin, "master_repl_offset");
    await settled(async () => (await offsetOf(primary)) === (await offsetOf(replica)));
    replication.blackHole("toClient");
    expect(await add(url, { sequence: 1, value: 1 })).toMatchObject({ output: 2 });
    await primary.kill();
    await replica.admin.replicaof("NO", "ONE");
    line.leadTo(replica.port);
    await until(() => loggedBy(gateway).length > 0);
    expect((await fleetSays(url)).gone_back).toMatchObject({ times: 1 });
    await line.dispose();
  });
});

/** An address that leads to one server first, and to another server later. */
async function startLine(first: number) {
  let port = first;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const behind = connect(port, "127.0.0.1");
    for (const [socket, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      open.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: (other: number) => void (port = other),
    async dispose() {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
