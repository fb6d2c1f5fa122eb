/** What happens in a fleet, as its readers hear it. */
import { describe, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { keyedEnv, useFolder, useKeys } from "../auth/keyed.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { readUntil } from "../support/until.js";

const folder = useFolder();
const running = useFleet({
  models: ["simple"],
  gateways: 2,
  workers: 2,
  env: { ...keyedEnv(folder), BATON_AUTH_OPEN: "health,metadata" },
});
const { make } = useKeys(running);

interface Heard {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** Reads events in the background until `stop` is called. */
async function follow(url: string, headers: Readonly<Record<string, string>>) {
  const stopping = new AbortController();
  const answer = await fetch(`${url}/v2/fleet/events`, { headers, signal: stopping.signal });
  const heard: Heard[] = [];
  const reading = async () => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? expect.fail("no body")) {
      text += decoder.decode(chunk, { stream: true });
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const [, id = "", event = "", data = ""] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/s.exec(part) ?? [];
        if (data !== "") heard.push({ id, event, data: JSON.parse(data) as Heard["data"] });
      }
    }
  };
  const ended = reading().catch(() => undefined);
  return {
    status: answer.status,
    heard,
    stop: async () => {
      stopping.abort();
      await ended;
    },
  };
}

describe("the events of the fleet", () => {
  it("are for operators", async () => {
    const answers = await Promise.all([
      fetch(`${running.url}/v2/fleet/events`),
      fetch(`${running.url}/v2/fleet/events`, { headers: (await make()).headers }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([401, 403]);
  });

  it("begin with the fleet, and tell of a worker that goes and comes, also to a reader that was away", async () => {
    const { headers } = await make({ scopes });
    const workers = async () => {
      const { workers: all } = (await (await fetch(`${running.url}/v2/fleet`, { headers })).json()) as {
        readonly workers: readonly unknown[];
      };
      return all.length;
    };
    await expect.poll(workers).toBe(2);
    const reader = await follow(running.url, headers);
    expect(reader.status).toBe(200);
    const worker = running.fleet.workers[1] ?? expect.fail("there is a worker");
    const named = (events: readonly Heard[], event: string) =>
      events.filter((one) => one.event === event && String(one.data["worker"]).startsWith(`${worker.name}.`));
    await expect.poll(() => reader.heard.length).toBeGreaterThan(0);
    const [first] = reader.heard;
    expect(first?.event).toBe("snapshot");
    expect(first?.data["workers"]).toHaveLength(2);
    await worker.kill();
    await expect.poll(() => named(reader.heard, "worker.lost")).toHaveLength(1);
    await worker.start();
    await expect.poll(() => named(reader.heard, "worker.joined")).toHaveLength(1);
    await worker.terminate();
    await expect.poll(() => named(reader.heard, "worker.left")).toHaveLength(1);
    await worker.start();
    await expect.poll(() => named(reader.heard, "worker.joined")).toHaveLength(2);
    await reader.stop();
    const ids = reader.heard.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const [lost] = named(reader.heard, "worker.lost");
    const later = await follow(running.url, { ...headers, "last-event-id": lost?.id ?? "" });
    const replayed = ["worker.joined", "worker.left", "worker.joined", "snapshot"];
    await expect.poll(() => later.heard.slice(0, 4).map(({ event }) => event)).toEqual(replayed);
    await later.stop();
    // Another gateway has other numbers, and tells such a reader how the fleet is.
    const [, other = ""] = running.fleet.urls;
    const elsewhere = await follow(other, { ...headers, "last-event-id": lost?.id ?? "" });
    await expect.poll(() => elsewhere.heard[0]?.event).toBe("snapshot");
    await elsewhere.stop();
  });

  it("bring the loads of a fleet in which nothing else happens", async () => {
    const { headers } = await make({ scopes });
    const reader = await follow(running.url, headers);
    const loads = () =>
      new Set(reader.heard.map(({ data }) => JSON.stringify((data["workers"] as { load: unknown }[])[0]?.load))).size;
    await expect.poll(loads, { timeout: 20_000 }).toBeGreaterThan(2);
    expect(reader.heard.every(({ event }) => event === "snapshot")).toBe(true);
    await reader.stop();
  });

  it("have a limit of readers", async () => {
    const { headers } = await make({ scopes });
    // The gateway may not have noticed yet that the readers before have left.
    const follower = () =>
      readUntil(
        () => follow(running.url, headers),
        ({ status }) => status === 200,
      );
    const readers = await Promise.all(Array.from({ length: 64 }, follower));
    await expect.poll(() => readers.every(({ heard }) => heard.length > 0)).toBe(true);
    const answer = await fetch(`${running.url}/v2/fleet/events`, { headers });
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: "unavailable" }]);
    await Promise.all(readers.map(({ stop }) => stop()));
    const after = async () => {
      const reader = await follow(running.url, headers);
      await reader.stop();
      return reader.status;
    };
    expect(await readUntil(after, (status) => status === 200)).toBe(200);
  });
});
