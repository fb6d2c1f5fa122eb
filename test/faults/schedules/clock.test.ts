/**
 * Schedules over days on which clocks change, in processes whose clocks this test moves. Before
 * most moves the test kills processes, as in an outage.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { simpleBody } from "../../jobs/ask.js";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { find, jobsOf, made } from "../../schedules/ask.js";

const folder = mkdtempSync(join(tmpdir(), "baton-clock-"));
const clock = join(folder, "ahead-ms");
moveTo("2027-03-27T12:00:00Z");
const preload = fileURLToPath(new URL("moved-clock.mjs", import.meta.url));
/** A bundled program contains its own client of Redis, whose clock the test cannot move. */
const unjoined: Readonly<Record<string, string>> = {
  gateway: join(root, "dist/gateway/main.js"),
  jobs: join(root, "dist/gateway/doors/jobs/main.js"),
};
const served = useFleet({
  jobs: 2,
  models: ["simple"],
  env: { BATON_TEST_CLOCK: clock },
  flags: (member) => (member.startsWith("worker") ? [] : ["--import", preload]),
  programs: (member) => unjoined[member.split("-")[0] ?? ""],
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function moveTo(time: string): void {
  writeFileSync(`${clock}.new`, String(Date.parse(time) - Date.now()));
  renameSync(`${clock}.new`, clock);
}

const BERLIN = "Europe/Berlin";

it("fire once where an hour is skipped, and once where one comes twice", { timeout: 240_000 }, async () => {
  const { url } = served;
  const { gateways, workers, jobs, redis } = served.fleet;
  const make = (cron: string, timezone: string) =>
    made(url, "simple", { cron, timezone, job: { infer: simpleBody(1) } });
  const daily = await make("30 2 * * *", BERLIN);
  const often = await make("15,45 2 * * *", BERLIN);
  const hourly = await make("0 * * * *", BERLIN);
  const lord = await make("15 2 * * *", "Australia/Lord_Howe");
  const ticksOf = async ({ id }: { readonly id: string }) =>
    (await jobsOf(url, id)).map((one) => one.scheduled_for.replace(":00.000Z", "Z"));
  const firedAt = (one: { readonly id: string }, ticks: readonly string[]) =>
    expect.poll(() => ticksOf(one), { timeout: 60_000 }).toEqual(ticks);
  /** Keeps the processes that look after schedules away until `time`. */
  const outageUntil = async (time: string) => {
    await Promise.all(jobs.map((one) => one.kill()));
    moveTo(time);
    await Promise.all(jobs.map((one) => one.start()));
  };

  // Every process dies, and is back shortly before clocks change.
  await Promise.all([...gateways.map(({ member }) => member), ...workers].map((one) => one.kill()));
  await redis.kill();
  await redis.restart();
  await outageUntil("2027-03-28T00:30:00Z");
  await Promise.all([...gateways.map(({ member }) => member), ...workers].map((one) => one.start()));
  await served.fleet.whenServing();
  await firedAt(hourly, ["2027-03-28T00:00Z"]);
  await firedAt(lord, ["2027-03-27T15:15Z"]);

  // Clocks in Berlin go from 01:59 to 03:00 at 01:00 UTC.
  moveTo("2027-03-28T00:59:57Z");
  const march = ["2027-03-28T00:00Z", "2027-03-28T01:00Z"];
  await firedAt(daily, ["2027-03-28T01:00Z"]);
  await firedAt(often, ["2027-03-28T01:00Z"]);
  await firedAt(hourly, march);
  await expect.poll(async () => (await find(url, daily.id)).next_run_at).toBe("2027-03-29T00:30:00.000Z");

  // 02:15, 02:30 and 02:45 do not exist; an hour later they would come during this outage.
  await outageUntil("2027-03-28T02:00:02Z");
  await firedAt(hourly, [...march, "2027-03-28T02:00Z"]);
  expect(await ticksOf(daily)).toEqual(["2027-03-28T01:00Z"]);
  expect(await ticksOf(often)).toEqual(["2027-03-28T01:00Z"]);

  // In October the hour from 02:00 on comes twice, at 00:00 and at 01:00 UTC.
  await outageUntil("2027-10-31T00:50:00Z");
  await firedAt(daily, ["2027-03-28T01:00Z", "2027-10-31T00:30Z"]);
  await firedAt(often, ["2027-03-28T01:00Z", "2027-10-31T00:45Z"]);
  await firedAt(hourly, [...march, "2027-03-28T02:00Z", "2027-10-31T00:00Z"]);
  await outageUntil("2027-10-31T02:00:02Z");
  await firedAt(hourly, [...march, "2027-03-28T02:00Z", "2027-10-31T00:00Z", "2027-10-31T02:00Z"]);
  expect(await ticksOf(daily)).toEqual(["2027-03-28T01:00Z", "2027-10-31T00:30Z"]);
  expect(await ticksOf(often)).toEqual(["2027-03-28T01:00Z", "2027-10-31T00:45Z"]);
  for (const one of [daily, often, hourly]) {
    const { length } = await ticksOf(one);
    await expect.poll(async () => (await find(url, one.id)).runs).toBe(length);
  }
});
