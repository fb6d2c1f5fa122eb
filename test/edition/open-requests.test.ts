/** The requests for a model that wait or run are listed to their own tenant. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, lookDuring, step, TENANT_HEADER } from "./sequences/ask.js";
import { buckets } from "./settings.js";

const served = useFleet({
  workers: 1,
  models: ["slow-sequence", "tale-gpt"],
  env: { ...buckets(4), BATON_TENANT_HEADER: TENANT_HEADER },
  direct: true,
});

interface Open {
  readonly id: string;
  readonly state: string;
  readonly admitted_at: string | null;
  readonly sequence_id: number | null;
  readonly step: number | null;
  readonly worker: string | null;
  readonly deliveries: number;
  readonly stream: boolean;
  readonly index: number | null;
}

async function open(model: string, query = "", tenant = "acme"): Promise<{ requests: Open[]; next?: string }> {
  const { status, body } = await ask("GET", served.url, `${model}/requests${query}`, { tenant });
  expect(status).toBe(200);
  return body as unknown as { requests: Open[]; next?: string };
}

describe("the open requests of a model", () => {
  it("are listed: the step that runs with its worker, and those behind it", async () => {
    // A step may be over before a look, so others follow until a look has seen one.
    let [id, found]: [number, readonly Open[]] = [0, []];
    while (found.length < 2) {
      id++;
      await step(served.url, "slow-sequence", id, 1, { start: true });
      const stepping = Promise.all([1, 2, 3, 4].map(() => step(served.url, "slow-sequence", id, 1)));
      await lookDuring(stepping, async () => {
        const { requests } = await open("slow-sequence");
        expect((await open("slow-sequence", "", "other")).requests).toEqual([]);
        if (requests.some(({ state }) => state === "running")) found = requests;
        return found.length >= 2;
      });
    }
    const { workers } = (await (await fetch(`${served.url}/v2/fleet`)).json()) as { workers: { name: string }[] };
    const common = { sequence_id: id, stream: false, index: null, priority: null };
    const [one, ...more] = found.filter(({ state }) => state === "running");
    expect(more).toEqual([]);
    expect(one).toMatchObject({ ...common, worker: workers[0]?.name, deliveries: 1 });
    expect(Math.abs(Date.parse(one?.admitted_at ?? "") - Date.now())).toBeLessThan(60_000);
    for (const queued of found.filter(({ state }) => state === "queued")) {
      expect(queued).toMatchObject({ ...common, worker: null, deliveries: 0 });
    }
    expect(new Set(found.map(({ step: number }) => number)).size).toBe(found.length);
    await expect.poll(() => open("slow-sequence")).toEqual({ requests: [] });
  });

  it("are listed page by page, and streams with their length", async () => {
    const bodies = Array.from({ length: 5 }, () => ({ text_input: "Once", max_tokens: 400 }));
    const leaving = new AbortController();
    const streams = bodies.map((body) =>
      fetch(`${served.url}/v2/models/tale-gpt/generate_stream`, {
        method: "POST",
        headers: { [TENANT_HEADER]: "acme" },
        body: JSON.stringify(body),
        signal: leaving.signal,
      }),
    );
    const [first] = await Promise.all(streams);
    await first?.body?.getReader().read();
    // The streams stand in the middle while the test looks.
    for (const worker of served.fleet.workers) worker.freeze();
    const listed = new Map<string, Open>();
    for (let next: string | undefined = ""; next !== undefined;) {
      const page: { requests: Open[]; next?: string } = await open("tale-gpt", `?limit=2${next && `&after=${next}`}`);
      expect(page.requests.length).toBeLessThanOrEqual(2);
      for (const one of page.requests) listed.set(one.id, one);
      next = page.next;
    }
    expect(listed.size).toBe(5);
    for (const one of listed.values()) expect(one).toMatchObject({ stream: true, sequence_id: null, step: null });
    expect([...listed.values()].some(({ index }) => (index ?? 0) > 0)).toBe(true);
    for (const worker of served.fleet.workers) worker.thaw();
    leaving.abort();
    for (const id of listed.keys()) {
      const cancel = { method: "DELETE", headers: { [TENANT_HEADER]: "acme" } };
      expect([204, 409]).toContain((await fetch(`${served.url}/v2/requests/${id}`, cancel)).status);
    }
    await expect.poll(async () => (await open("tale-gpt")).requests).toEqual([]);
  });

  it("are refused with reasons", async () => {
    for (const query of ["?state=ended", "?limit=0", "?after=x", "?from=1"]) {
      expect(await ask("GET", served.url, `tale-gpt/requests${query}`)).toMatchObject({ status: 400 });
    }
    expect(await ask("GET", served.url, "no-model/requests")).toMatchObject({ body: { code: "unknown_model" } });
  });
});
