/** The requests for a model that wait or run are listed to their own tenant. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, step, TENANT_HEADER } from "./sequences/ask.js";
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
    const stepping = [1, 2, 3].map((i) => step(served.url, "slow-sequence", 5, 800, { start: i === 1 }));
    let one: Open | undefined;
    await expect.poll(async () => ([one] = (await open("slow-sequence", "?state=running")).requests)).toHaveLength(1);
    const { workers } = (await (await fetch(`${served.url}/v2/fleet`)).json()) as { workers: { name: string }[] };
    const common = { sequence_id: 5, stream: false, index: null, priority: null };
    expect(one).toMatchObject({ ...common, state: "running", worker: workers[0]?.name, deliveries: 1 });
    expect(Math.abs(Date.parse(one?.admitted_at ?? "") - Date.now())).toBeLessThan(60_000);
    const { requests } = await open("slow-sequence", "?state=queued");
    for (const queued of requests) expect(queued).toMatchObject({ ...common, worker: null, deliveries: 0 });
    expect(new Set([one?.step, ...requests.map(({ step: number }) => number)]).size).toBe(1 + requests.length);
    expect((await open("slow-sequence", "", "other")).requests).toEqual([]);
    await Promise.all(stepping);
    expect(await open("slow-sequence")).toEqual({ requests: [] });
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
    await Promise.all(streams);
    const listed = new Map<string, Open>();
    for (let next: string | undefined = ""; next !== undefined;) {
      const page: { requests: Open[]; next?: string } = await open("tale-gpt", `?limit=2${next && `&after=${next}`}`);
      expect(page.requests.length).toBeLessThanOrEqual(2);
      for (const one of page.requests) listed.set(one.id, one);
      next = page.next;
    }
    expect(listed.size).toBe(5);
    for (const one of listed.values()) expect(one).toMatchObject({ stream: true, sequence_id: null, step: null });
    await expect.poll(async () => (await open("tale-gpt")).requests.some(({ index }) => (index ?? 0) > 2)).toBe(true);
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
