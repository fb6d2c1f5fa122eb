/** What the audit says of a fleet that asks for no keys, and of those who try its back doors. */
import { expect, it } from "vitest";
import { replySubject } from "#shared/queue/keys.js";
import { freePort } from "../support/brokers/port.js";
import type { Member } from "../support/fleet/member.js";
import { connectAs } from "../support/brokers/nats.js";
import { useFleet } from "../support/fleet/use-fleet.js";

const boardPort = await freePort();
const served = useFleet({
  workers: 0,
  jobs: 1,
  models: [],
  guarded: true,
  env: { BATON_AUTH: "off", BATON_INSECURE: "1" },
  jobsEnv: { BATON_JOBS_ADMIN_PORT: String(boardPort), BATON_ADMIN_TOKEN: "a-token-of-operators-1" },
  direct: true,
});

const audited = async (member: Member | undefined, event: string): Promise<Readonly<Record<string, unknown>>> => {
  if (member === undefined) throw new Error("the fleet has no such member");
  const line = await member.process.waitForLine(
    event,
    ({ fields }) => fields["audit"] === true && fields["event"] === event,
  );
  return line.fields;
};
const gateway = (): Member | undefined => served.fleet.gateways[0]?.member;

it("a gateway that lets everybody in says so at its start", async () => {
  expect(await audited(gateway(), "started_insecure")).toMatchObject({ address: "127.0.0.1", count: 1 });
});

it("credentials for NATS are noted with their tenant", async () => {
  const answer = await fetch(`${served.url}/v2/subscriptions`, { method: "POST", body: "{}" });
  expect(answer.status).toBe(200);
  const noted = await audited(gateway(), "subscription_issued");
  expect(noted).toMatchObject({ tenant: "default" });
  expect(JSON.stringify(noted)).not.toMatch(/eyJ|jwt|seed/);
});

it("a reply that no worker has made is noted, and many are few lines", async () => {
  // Only workers may publish replies.
  const forger = await connectAs(served.fleet.nats, "worker");
  const listening = await gateway()?.process.waitForLine(
    "listening",
    ({ fields }) => fields["msg"] === "gateway listening",
  );
  for (let i = 0; i < 1_000; i++)
    forger.publish(replySubject(String(listening?.fields["gateway"])), Buffer.alloc(100, i));
  await forger.drain();
  await audited(gateway(), "reply_forged");
  const counts = (): number[] =>
    (gateway()?.process.lines ?? [])
      .filter(({ fields }) => fields["event"] === "reply_forged")
      .map(({ fields }) => Number(fields["count"]));
  await expect.poll(() => counts().reduce((sum, count) => sum + count, 0)).toBe(1_000);
  expect(counts().length).toBeLessThan(100);
});

it("a wrong token of the operators' board is noted, without the token", async () => {
  const authorization = `Basic ${btoa("operator:wrong-token")}`;
  await fetch(`http://127.0.0.1:${boardPort}/api/queues`, { headers: { authorization } });
  const noted = await audited(served.fleet.jobs[0], "board_failed");
  expect(noted).toMatchObject({ address: "127.0.0.1", path: "/api/queues", status: 401 });
  expect(JSON.stringify(noted)).not.toContain("wrong-token");
});
