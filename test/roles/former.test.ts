/**
 * Deployments without users for each role go on: a Redis and a NATS that let all clients in,
 * and a NATS whose accounts an earlier version has made. Each process says so once.
 */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeNatsAccounts } from "../../gateway/subscriptions/nats-accounts.js";
import { simpleBody } from "../jobs/ask.js";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "baton-former-"))));
afterAll(() => rmSync(folder, { recursive: true }));

const answered = async ({ urls: [url] }: Fleet) => {
  const manner = { method: "POST", body: JSON.stringify(simpleBody(21)) };
  const answer = await fetch(`${url}/v2/models/simple/infer`, manner);
  return ((await answer.json()) as { outputs: readonly { data: readonly number[] }[] }).outputs[0]?.data[0];
};
/** The warnings of each process about its users. */
const warnings = ({ gateways, jobs, workers }: Fleet) =>
  [...gateways.map(({ member }) => member), ...jobs, ...workers].map(({ process }) =>
    process.lines.flatMap(({ fields }) => /may do everything in (\w+)/.exec(String(fields["msg"]))?.[1] ?? []).sort(),
  );

it("a Redis and a NATS without users", async () => {
  const env = { BATON_REDIS_USERNAME: "", BATON_REDIS_PASSWORD_FILE: "" };
  const fleet = await startFleet({ models: ["simple"], jobs: 1, env });
  try {
    await fleet.whenServing();
    expect(await answered(fleet)).toBe(42);
    const both = ["nats", "redis"];
    expect(warnings(fleet)).toEqual([both, both, both]);
  } finally {
    await fleet.dispose();
  }
});

it("accounts of an earlier version, which made the same credentials for all processes", async () => {
  const earlier = join(folder, "earlier");
  const places = { server: folder, gateways: earlier, creds: join(folder, "made/*.creds") };
  const made = await makeNatsAccounts(places);
  copyFileSync(made.creds.operator, join(earlier, "baton.creds"));
  const config = readFileSync(made.config);
  const later = { server: folder, gateways: folder, creds: join(folder, "*.creds"), former: earlier };
  const { creds, seed } = await makeNatsAccounts(later);
  expect(readFileSync(made.config)).toEqual(config);
  expect(readFileSync(seed)).toEqual(readFileSync(made.seed));
  for (const file of Object.values(creds)) {
    expect(readFileSync(file)).toEqual(readFileSync(made.creds.operator));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  }
  const fleet = await startFleet({ models: ["simple"], jobs: 1, guarded: true, folder });
  try {
    await fleet.whenServing();
    expect(await answered(fleet)).toBe(42);
    expect(warnings(fleet)).toEqual([["nats"], ["nats"], ["nats"]]);
  } finally {
    await fleet.dispose();
  }
});
