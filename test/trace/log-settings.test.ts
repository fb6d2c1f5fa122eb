/**
 * Operators change how much all processes of a running fleet log, by Triton's path or its gRPC:
 * every process takes the change over, and so does a process that starts later.
 */
import { afterAll, describe, expect, it } from "vitest";
import { GrpcClient } from "../protocols/grpc/client.js";
import type { Member } from "../support/fleet/member.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";

const quiet = {
  log_file: "",
  log_info: true,
  log_warning: true,
  log_error: true,
  log_verbose_level: 0,
  log_format: "default",
};
const loud = { ...quiet, log_verbose_level: 1 };

describe("the level of the log", () => {
  const served = useFleet({ models: ["simple"], gateways: 2, workers: 2, jobs: 1, direct: true, grpc: true });
  const opened: GrpcClient[] = [];
  afterAll(() => opened.forEach((one) => one.close()));
  const grpc = (gateway: number): GrpcClient =>
    (opened[gateway] ??= new GrpcClient(served.fleet.gateways[gateway]?.grpc ?? ""));

  const members = (): readonly Member[] => {
    const { gateways, workers, jobs } = served.fleet;
    return [...gateways.map(({ member }) => member), ...workers, ...jobs];
  };
  const change = async (gateway: number, body: object): Promise<unknown> => {
    const answer = await fetch(`${served.fleet.urls[gateway]}/v2/logging`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };
  /** Resolves when all processes have this level, and all gateways say so. */
  const everywhere = async (level: string, shown: object): Promise<void> => {
    await until(() => members().every((member) => levelOf(member) === level));
    for (const url of served.fleet.urls) {
      await expect.poll(async () => (await fetch(`${url}/v2/logging`)).json()).toEqual(shown);
    }
  };

  it("is changed by one gateway for every process, with the debug lines of workers", async () => {
    for (const member of members()) expect(levelOf(member)).toBeUndefined();
    expect(await change(0, { log_verbose_level: 3 })).toEqual({ status: 200, body: loud });
    await everywhere("debug", loud);
    expect(await served.redis.get("{registry}:logging")).toBe("3");
    const batches = () => served.fleet.workers.reduce((sum, worker) => sum + worker.logged("batch"), 0);
    expect(batches()).toBe(0);
    await infer(served.url);
    await until(() => batches() > 0);
  });

  it("is taken over by processes that start later", async () => {
    const { gateways, workers, jobs } = served.fleet;
    const latecomers = [gateways[1]?.member, workers[1], jobs[0]].filter((member) => member !== undefined);
    await Promise.all(latecomers.map((member) => member.restart()));
    await everywhere("debug", loud);
  });

  it("is changed and shown over gRPC, too", async () => {
    const settings = { log_verbose_level: { uint32_param: 0 } };
    const { message } = await grpc(1).call("LogSettings", { settings });
    expect(message).toMatchObject({ settings: { log_verbose_level: { uint32_param: 0 } } });
    await everywhere("info", quiet);
    const seen = await grpc(0).call("LogSettings", { settings: {} });
    expect(seen.message).toMatchObject({ settings: { log_verbose_level: { uint32_param: 0 } } });
  });

  it("is reset to the setting of each process, and takes back all that it shows", async () => {
    expect(await change(1, loud)).toEqual({ status: 200, body: loud });
    await everywhere("debug", loud);
    expect(await change(0, { log_verbose_level: null })).toEqual({ status: 200, body: quiet });
    await everywhere("info", quiet);
    expect(await served.redis.exists("{registry}:logging")).toBe(0);
  });
});

/** The level that a process has taken over last; undefined if it has never done so. */
function levelOf(member: Member): unknown {
  const changes = member.process.lines.filter(({ fields }) => fields["msg"] === "the level of the log is changed");
  return changes.at(-1)?.fields["logs"];
}

async function infer(url: string): Promise<void> {
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({
    name,
    datatype: "INT32",
    shape: [1, 16],
    data: Array(16).fill(1),
  }));
  const answer = await fetch(`${url}/v2/models/simple/infer`, { method: "POST", body: JSON.stringify({ inputs }) });
  expect(answer.status).toBe(200);
}
