import { describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { encodeRequestId } from "#shared/queue/address.js";
import { logKey } from "#shared/queue/keys.js";
import { BUCKETS } from "../support/fleet/profile.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";
import { baton, startBaton, type Ended, type Running } from "./baton.js";

const model = "tale-gpt";
// A gateway that gets a stop signal ends its streams at once, without a moment of grace.
const served = useFleet({ models: [model], env: { BATON_LINGER_MS: "0" } });
const tale = [
  "generate",
  model,
  "Write a short story about a cat who discovers a secret portal.",
  "--temperature",
  "0",
];

interface Broken {
  /** The request's public id. */
  readonly id: string;
  readonly ended: Ended;
}

/**
 * Starts the command, and breaks a part of the fleet when the answer has begun. On a slow machine
 * the answer may end first; then there is another try.
 */
async function inTheMiddle(
  args: readonly string[],
  isCaught: (broken: Broken) => boolean | Promise<boolean>,
  breakIt: (running: Running, id: string) => unknown,
): Promise<Broken> {
  for (let tries = 0; tries < 10; tries++) {
    const before = await begun();
    const running = startBaton(args, { url: served.url });
    let id = "";
    await until(async () => {
      id = (await begun()).find((one) => !before.includes(one)) ?? "";
      return id !== "";
    });
    // The command prints an answer in JSON at the end.
    if (!args.includes("--json")) await until(() => running.printed() !== "");
    await breakIt(running, id);
    const broken = { id, ended: await running.ended };
    if (await isCaught(broken)) return broken;
  }
  throw new Error("the answer had ended before anything was broken, ten times");
}

/** The public ids of all requests that have begun to answer. */
async function begun(): Promise<string[]> {
  const keys = await served.redis.keys("log:*");
  return keys.flatMap((key) => {
    const request = key.slice(key.lastIndexOf(":") + 1);
    const places = Array.from({ length: BUCKETS }, (_, bucket) => ({ bucket, model, tenant: DEFAULT_TENANT, request }));
    return places.filter((place) => logKey(place) === key).map(encodeRequestId);
  });
}

async function stateOf(id: string): Promise<string | undefined> {
  const answer = await fetch(`${served.url}/v2/requests/${id}`);
  const { state } = (await answer.json()) as { state?: string };
  return state;
}

describe("a text", { timeout: 120_000 }, () => {
  it.each([
    ["dies", /the connection to \S+ broke: .*; reading on after record \d+\n/],
    ["is told to stop", /\S+ ended the stream before its end; reading on after record \d+\n/],
  ])("is whole although the gateway %s in its middle", async (how, said) => {
    const undisturbed = await baton(tale, { url: served.url });
    expect(undisturbed.code).toBe(0);
    const { ended } = await inTheMiddle(
      tale,
      ({ ended: { stderr } }) => stderr !== "",
      async () => {
        const member = served.fleet.gateways[0]?.member;
        await (how === "dies" ? member?.kill() : member?.terminate());
        await member?.start();
      },
    );
    expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code: 0, stdout: undisturbed.stdout });
    expect(ended.stderr).toMatch(said);
  });

  it("ends with 130 at Ctrl-C, and its request ends with it", async () => {
    const { id, ended } = await inTheMiddle(
      tale,
      async ({ id, ended: { code } }) => code !== 0 && (await stateOf(id)) !== "completed",
      (running) => running.kill("SIGINT"),
    );
    const { code, stderr } = ended;
    expect({ code, stderr }).toEqual({ code: 130, stderr: `baton: request ${id} was cancelled\nbaton: interrupted\n` });
    expect(await stateOf(id)).toBe("cancelled");
  });

  it("ends quietly when nobody reads it any more, and so does its request", async () => {
    const { id, ended } = await inTheMiddle(
      tale,
      // The worker may have made the last token before the command has noticed.
      async ({ id }) => (await stateOf(id)) !== "completed",
      (running) => running.stopReading(),
    );
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(await stateOf(id)).toBe("cancelled");
  });

  it("ends with 1 when somebody else cancels its request", async () => {
    const { id, ended } = await inTheMiddle(
      [...tale, "--json"],
      ({ ended: { code } }) => code !== 0,
      (_, id) => fetch(`${served.url}/v2/requests/${id}`, { method: "DELETE" }),
    );
    expect(ended.code).toBe(1);
    expect(JSON.parse(ended.stdout)).toMatchObject({ id, error: { code: "cancelled" }, finish_reason: null });
    expect(ended.stderr).toMatch(/^baton: .*\(cancelled\)\n$/);
  });
});

describe("fleet --watch", { timeout: 120_000 }, () => {
  it("goes on over a gateway's restart, a line each with --json, and ends with 130 at Ctrl-C", async () => {
    const running = startBaton(["fleet", "--watch", "--json"], { url: served.url });
    const lines = () => running.printed().split("\n").length - 1;
    await until(() => lines() >= 1);
    await served.fleet.gateways[0]?.member.restart();
    const before = lines();
    await until(() => lines() > before + 1, 60_000);
    running.kill("SIGINT");
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(130);
    for (const line of stdout.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("workers");
    expect(stderr).toMatch(/baton: interrupted\n$/);
  });

  it("ends quietly when nobody reads it any more", async () => {
    const running = startBaton(["fleet", "--watch"], { url: served.url });
    await until(() => running.printed() !== "");
    running.stopReading();
    expect(await running.ended).toMatchObject({ code: 0, stderr: "" });
  });
});
