/**
 * Two versions of Baton at once, as in a roll-out and a roll-back: gateways and workers of an
 * earlier commit beside new ones, on one Redis and NATS. Each member in turn ends or is killed, and
 * comes back as the other version.
 *
 * BATON_EARLIER names a folder with an earlier commit, installed and built (test/README.md). A
 * commit from before jobs knows neither the paths nor the records of jobs, so a fleet of both has
 * promises of its own.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fleet } from "../../support/fleet/fleet.js";
import type { Member } from "../../support/fleet/member.js";
import { ownConfig } from "../../support/fleet/repository.js";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { Receiver, WebhookClient } from "../../support/jobs/webhooks.js";
import { experiment } from "../../support/sequences/experiment.js";
import { StreamLab } from "../../support/streams/lab.js";
import { until } from "../../support/until.js";
import { nth, pause } from "../pace.js";
import { expectNoViolation, expectUndisturbed } from "../verdict.js";
import { accepted, ask, ended, simpleBody, type Body } from "../../jobs/ask.js";
import { successesOf } from "../../statistics/load.js";
import { Inheritance } from "./inheritance.js";

const earlier = process.env["BATON_EARLIER"] ?? "";
const SEED = 20_261_123;
const TIMEOUT_MS = 600_000;

type Version = "earlier" | "new";

/** The programs of a member by its kind, the preferred program first: old commits join no files. */
const entries: Readonly<Record<string, readonly string[]>> = {
  gateway: ["bundled/gateway/main.js", "gateway/main.js"],
  worker: ["worker/supervisor.js"],
  jobs: ["bundled/gateway/jobs.js", "gateway/jobs/main.js"],
};

/** @returns undefined if this version has no such program */
function find(kind: string, version: Version): string | undefined {
  const dist = join(version === "new" ? root : earlier, "dist");
  return entries[kind]?.map((entry) => join(dist, entry)).find((path) => existsSync(path));
}

function programOf(member: string, version: Version): string {
  const program = find(member.split("-")[0] ?? "", version);
  if (program === undefined) throw new Error(`the ${version} version has no program for ${member}`);
  return program;
}

const knowsJobs = earlier !== "" && find("jobs", "earlier") !== undefined;

/** At first every other gateway and worker runs the earlier version, and no jobs process does. */
function half(member: string): string | undefined {
  const isEarlier = Number(member.split("-").at(-1)) % 2 === 1 && !member.startsWith("jobs");
  return isEarlier ? programOf(member, "earlier") : undefined;
}

/** Kills or stops the member, and starts it as this version. */
async function change(member: Member, version: Version, how: "kill" | "terminate"): Promise<void> {
  await (how === "kill" ? member.kill() : member.terminate(30_000));
  member.reprogram(programOf(member.name, version));
  await member.start();
}

/** Members in the order of a roll-out, workers first. */
const inOrder = ({ workers, gateways }: Fleet) => [...workers, ...gateways.map(({ member }) => member)];

/** Takes the whole fleet to the new version, and back to the earlier one, through kills of both. */
async function rollOutAndBack(fleet: Fleet): Promise<number> {
  let changes = 0;
  for (const [version, how, members] of [
    ["new", "terminate", inOrder(fleet)],
    ["earlier", "kill", inOrder(fleet).reverse()],
    ["new", "kill", inOrder(fleet)],
    ["earlier", "terminate", inOrder(fleet).reverse()],
  ] as const) {
    for (const member of members) {
      await pause(300);
      await change(member, version, how);
      changes++;
    }
  }
  return changes;
}

describe.skipIf(earlier === "")("two versions of Baton at once", () => {
  it("lose, double and reorder no step of a sequence", { timeout: TIMEOUT_MS }, async () => {
    const findings = await experiment({
      seed: SEED,
      fleet: { gateways: 2, workers: 4, models: ["chain", "simple"], direct: true, programs: half },
      sequences: 60,
      steps: 20,
      models: ["chain"],
      spreadMs: 30_000,
      breaking: rollOutAndBack,
    });
    expectNoViolation("two-versions", findings);
    expect(findings.broke).toBe(24);
  });

  it("break no stream", { timeout: TIMEOUT_MS }, async () => {
    const lab = await StreamLab.open({
      seed: SEED,
      fleet: { gateways: 2, workers: 2, models: ["gen-mha"], direct: true, programs: half },
      asks: { count: 40, model: "gen-mha", tokens: [20, 160] },
    });
    try {
      const findings = await lab.experiment({ name: "two-versions-streams", running: 40, breaking: rollOutAndBack });
      expectUndisturbed("two-versions-streams", findings);
    } finally {
      await lab.close();
    }
  });
});

describe.skipIf(earlier === "")("a model with a response cache", () => {
  const served = useFleet({
    gateways: 2,
    workers: 2,
    models: ["simple"],
    configs: { simple: `${ownConfig("simple")}\nresponse_cache { enable: true }` },
    direct: true,
    programs: half,
  });
  const infer = async (i: number) => {
    const path = `${nth(served.fleet.urls, i % 2)}/v2/models/simple/infer`;
    const { status, text } = await ask(path, { body: simpleBody(i % 5) });
    const { outputs } = JSON.parse(text) as { readonly outputs?: readonly { readonly data: readonly number[] }[] };
    return { status, isRight: outputs?.[0]?.data[0] === 2 * (i % 5) };
  };

  it("answers rightly at both, and both count all of it", { timeout: TIMEOUT_MS }, async () => {
    for (let i = 0; i < 40; i++) {
      expect(await infer(i)).toEqual({ status: 200, isRight: true });
    }
    for (const url of served.fleet.urls) {
      await until(async () => (await successesOf(url, "simple")) === 40);
    }
  });

  it("answers rightly through a roll-out and back", { timeout: TIMEOUT_MS }, async () => {
    const load = { isOver: false, wrong: 0 };
    const client = async () => {
      for (let i = 0; !load.isOver; i++) {
        // A gateway that is gone refuses the connection.
        const answer = await infer(i).catch(() => undefined);
        if (answer?.status !== 200) await pause(50);
        else if (!answer.isRight) load.wrong++;
      }
    };
    const clients = [client(), client()];
    await rollOutAndBack(served.fleet);
    load.isOver = true;
    await Promise.all(clients);
    expect(load.wrong).toBe(0);
    for (let i = 0; i < 10; i++) expect((await infer(i)).status).toBe(200);
  });
});

describe.skipIf(earlier === "" || knowsJobs)("jobs beside an earlier version, which knows none", () => {
  const served = useFleet({
    gateways: 2,
    workers: 2,
    jobs: 1,
    models: ["accumulate", "simple", "gen-cheap"],
    direct: true,
    env: { BATON_WEBHOOK_ALLOW: "127.0.0.0/8" },
    programs: half,
  });
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await Receiver.start();
    const events = ["job.completed", "job.failed", "job.started", "batch.completed"];
    const webhooks = new WebhookClient(url());
    const { status } = await webhooks.ask("POST", "/webhooks", { url: receiver.url("/all"), events });
    expect(status).toBe(201);
  });
  afterAll(() => receiver.dispose());
  /** A gateway of this version. */
  const url = () => nth(served.fleet.urls, 1);
  const earlierUrl = () => nth(served.fleet.urls, 0);
  const told = (type: string) =>
    receiver
      .at("/all")
      .map((one) => JSON.parse(one.body) as { type: string; data: { id: string } })
      .filter((event) => event.type === type)
      .map(({ data }) => data.id);
  const toldOnce = (ids: readonly string[], type: string) =>
    until(() => ids.every((id) => told(type).includes(id)), 180_000);
  const submitSome = async (count: number, options: object = {}): Promise<Body[]> =>
    Promise.all(
      Array.from({ length: count }, (_, i) =>
        accepted(url(), "simple", { infer: simpleBody(i), labels: { i: String(i) }, ...options }),
      ),
    );
  const expectDone = async (jobs: readonly Body[]) => {
    const ends = await Promise.all(jobs.map(({ id }) => ended(url(), id)));
    expect(ends.map(({ state }) => state)).toEqual(jobs.map(() => "completed"));
    expect(ends.map(({ result }) => result?.outputs?.[0]?.data[0])).toEqual(jobs.map((_, i) => 2 * i));
  };

  it("are refused by the earlier gateway by the name of the path", async () => {
    const refused = await ask(`${earlierUrl()}/v2/models/simple/jobs`, { body: { infer: simpleBody(1) } });
    expect([refused.status, refused.body.code]).toEqual([404, "not_found"]);
    for (const path of ["/v2/jobs", "/v2/schedules", "/v2/webhooks", "/v1/batches", "/v1/files"]) {
      const { status, text } = await ask(`${earlierUrl()}${path}`);
      expect([status, text]).toEqual([404, expect.stringContaining("not_found")]);
    }
  });

  it("run at workers of both, each once, and whoever wants to be told is", { timeout: TIMEOUT_MS }, async () => {
    const jobs = await submitSome(60);
    await expectDone(jobs);
    await toldOnce(
      jobs.map(({ id }) => id),
      "job.completed",
    );
  });

  it("are known to the earlier gateway as requests, and can be cancelled there", { timeout: TIMEOUT_MS }, async () => {
    const { workers } = served.fleet;
    await Promise.all(workers.map((one) => one.kill()));
    const [job] = await submitSome(1);
    const path = `/v2/requests/${job?.request_id}`;
    expect((await ask(`${earlierUrl()}${path}`)).body.state).toBe("queued");
    const cancelled = await ask(`${earlierUrl()}${path}`, { method: "DELETE" });
    expect(cancelled.status).toBeLessThan(300);
    expect((await ask(`${url()}/v2/jobs/${job?.id}`)).body.state).toBe("cancelled");
    await Promise.all(workers.map((one) => one.start()));
  });

  it("are told of although none but earlier workers run them", { timeout: TIMEOUT_MS }, async () => {
    const { workers } = served.fleet;
    for (const worker of workers) await change(worker, "earlier", "terminate");
    const jobs = await submitSome(20, { attempts: 3 });
    await expectDone(jobs);
    await toldOnce(
      jobs.map(({ id }) => id),
      "job.completed",
    );
    for (const worker of workers) await change(worker, "new", "kill");
  });

  it("wait through a roll-back of all, and go on after it", { timeout: TIMEOUT_MS }, async () => {
    const { fleet } = served;
    const members = inOrder(fleet);
    const inheritance = await Inheritance.make(url(), receiver, 30_000);
    await Promise.all(fleet.jobs.map((one) => one.terminate(30_000)));
    for (const member of members.toReversed()) await change(member, "earlier", "kill");
    // The earlier version runs these steps among the records of the new version.
    await inheritance.step(fleet.urls, 20);
    await inheritance.whenDue();
    for (const member of members) await change(member, "new", "terminate");
    await Promise.all(fleet.jobs.map((one) => one.start()));
    await inheritance.expectEndsOnce(url());
  });
});

describe.skipIf(!knowsJobs)("jobs, schedules, batches and sequences", () => {
  const served = useFleet({
    gateways: 2,
    workers: 2,
    jobs: 2,
    models: ["accumulate", "simple"],
    direct: true,
    env: { BATON_WEBHOOK_ALLOW: "127.0.0.0/8" },
    programs: (member) => programOf(member, "earlier"),
  });
  let receiver: Receiver;
  beforeAll(async () => (receiver = await Receiver.start()));
  afterAll(() => receiver.dispose());

  it.each([
    ["earlier", "new", "terminate"],
    ["new", "earlier", "kill"],
  ] as const)("of the %s version end once under the %s version", { timeout: TIMEOUT_MS }, async (_, to, how) => {
    const { fleet } = served;
    const { urls } = fleet;
    const inheritance = await Inheritance.make(nth(urls, 0), receiver, 20_000);
    for (const member of [...inOrder(fleet), ...fleet.jobs]) {
      await change(member, to, how);
      await inheritance.step(urls, 4);
    }
    await inheritance.expectEndsOnce(nth(urls, 1));
  });
});
