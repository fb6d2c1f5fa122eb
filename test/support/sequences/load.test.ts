import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../fleet/random.js";
import { check } from "./invariants.js";
import { joined } from "../doors/door.js";
import { endingOf } from "../doors/http.js";
import { judged, RecordingClient } from "./client.js";
import { byRequest, History } from "./history.js";
import { runLoad } from "./load.js";
import { Pace } from "./pace.js";
import { planSequences } from "./sequences.js";
import { startToyServer, type Mistake } from "./toy-server.js";

async function runAgainst(mistake: Mistake) {
  const random = seededRandom(7);
  const server = await startToyServer(mistake, 4);
  const history = new History();
  const clients = ["one", "two"].map(
    (name) =>
      new RecordingClient({ name, history, urls: () => [server.url], random: random.fork(name), patienceMs: 5_000 }),
  );
  try {
    const sequences = planSequences({ count: 24, steps: 12, models: ["chain"], bursts: 0.2, random });
    await runLoad({ sequences, clients, random, pace: new Pace(0), rereads: 0.1, twins: 0.1 });
  } finally {
    for (const client of clients) client.close();
    await server.close();
  }
  const violations = check({
    events: history.events,
    floor: {
      readyEntries: 0,
      pendingEntries: 0,
      waitKeys: [],
      runsKeys: [],
      keysWithoutTtl: [],
      strangeKeys: [],
      dead: [],
      outcomeRecords: server.records,
      openOutcomes: [],
      sequences: server.sequences,
    },
    commits: [],
    resources: [{ at: 0, name: "toy", what: "rssBytes", value: 1 }],
    limits: { rssBytes: 1, descriptors: 1, usedMemoryBytes: 1, natsPendingBytes: 1 },
  });
  return { history, found: new Set(violations.map(({ invariant }) => invariant)) };
}

describe("client, load and checker together", () => {
  it("find nothing wrong with a server that loses a quarter of its answers but keeps its keys", async () => {
    const { history, found } = await runAgainst("none");
    const requests = byRequest(history.events);
    expect([...found]).toEqual([]);
    expect(requests.size).toBe(24 * 12);
    const retried = [...requests.values()].filter(({ submits }) => submits.length > 1).length;
    expect(retried).toBeGreaterThan(20);
  });

  it.each<[Mistake, string]>([
    ["forgets keys", "state is the fold"],
    ["forgets keys", "unknowns resolve"],
    ["forgets keys", "one outcome"],
    ["skips a step", "state is the fold"],
    ["loses a state", "state is the fold"],
    ["answers another's id", "no phantom"],
  ])("see that a server %s (%s)", async (mistake, invariant) => {
    expect((await runAgainst(mistake)).found).toContain(invariant);
  });
});

describe("endingOf", () => {
  it.each([
    [200, `{"id":"a","outputs":[{"data":[9223372036854775807]},{"data": [1, 2]}]}`, "ok"],
    [503, `{"error":"x","code":"outcome_unknown"}`, "unknown"],
    [429, `{"error":"x","code":"sequence_backlog"}`, "unknown"],
    [503, `{"error":"x","code":"expired"}`, "fail"],
    [503, `{"error":"no code"}`, "fail"],
    [500, `{"error":"x","code":"request_lost"}`, "fail"],
    [400, `{"error":"x","code":"sequence_start_required"}`, "fail"],
  ])("reads %i %s as %s", (status, body, kind) => {
    expect(endingOf({ status, body, retryAfterMs: undefined }).kind).toBe(kind);
  });

  it("keeps every digit", () => {
    const ending = endingOf({
      status: 200,
      body: `{"outputs":[{"data":[-9223372036854775808]}]}`,
      retryAfterMs: undefined,
    });
    expect(ending).toMatchObject({ output: "-9223372036854775808" });
  });
});

describe("judged", () => {
  const call = { request: "r", model: "m", parameters: {}, inputs: [] };
  const full = { kind: "unknown", why: "503 queue_full", refusal: "queue_full" } as const;
  const early = { kind: "fail", status: 409, code: "ahead_of_state" } as const;

  it("lets a client leave it at a refusal of its first attempt alone, if the plan allows the refusal", () => {
    const hurried = { ...call, mayFail: ["queue_full"] as const };
    expect(judged(hurried, full, 1)).toMatchObject({ kind: "fail", code: "queue_full", refused: true });
    expect(judged(hurried, full, 2)).toEqual(full);
    expect(judged(call, full, 1)).toEqual(full);
  });

  it("lets a step with a number come again if it came before its predecessor", () => {
    expect(judged({ ...call, numbered: true }, early, 1).kind).toBe("unknown");
    expect(judged(call, early, 1)).toEqual(early);
  });
});

describe("joined", () => {
  const part = (index: number) => ({ index, output: String(10 * index) });

  it("shows a part that came twice, too late or not at all", () => {
    const right = joined([part(0), part(1), part(2)]);
    expect(right).toBe("0:0|1:10|2:20");
    const wrong = [
      [part(0), part(1), part(1), part(2)],
      [part(1), part(0), part(2)],
      [part(0), part(2)],
    ].map(joined);
    for (const one of wrong) expect(one).not.toBe(right);
  });
});

describe("planSequences", () => {
  const plan = () =>
    planSequences({ count: 60, steps: 40, models: ["chain", "pill"], poison: 2, bursts: 0.1, random: seededRandom(3) });

  it("makes the same plan from the same seed, with ids of every kind and no id twice", () => {
    expect(plan()).toEqual(plan());
    const labels = plan().map(({ label }) => label);
    expect(new Set(labels).size).toBe(60);
    expect(labels.filter((label) => label.startsWith("u") && BigInt(label.slice(1)) > 1n << 63n)).not.toHaveLength(0);
  });

  it("gives poison to as many as asked, then a step that must be refused", () => {
    const poisoned = plan().filter((sequence) => sequence.poisoned);
    expect(poisoned).toHaveLength(2);
    for (const { calls, model } of poisoned) {
      expect(model).toBe("pill");
      expect(calls.slice(-2).map(({ expects }) => expects)).toEqual(["poison_request", "sequence_start_required"]);
    }
  });

  it("numbers the steps of some sequences, from each START on", () => {
    const random = seededRandom(3);
    const planned = planSequences({ count: 30, steps: 12, models: ["chain"], numbered: 0.5, random });
    const numbered = planned.filter(({ calls }) => calls[0]?.numbered === true);
    expect(numbered.length).toBeGreaterThan(5);
    for (const { calls } of numbered) {
      let begun = 0;
      for (const [i, call] of calls.entries()) {
        if (call.start === true) begun = i;
        expect(call.parameters["sequence_step"]).toBe(i - begun + 1);
      }
    }
    expect(numbered.some(({ calls }) => calls.some((call, i) => call.burst === calls[i + 1]?.burst))).toBe(true);
  });

  it("lets a policy refuse no step that begins or ends a sequence, or is its last", () => {
    const levels = { chain: [{ priority: 1 }, { priority: 2, mayFail: ["expired"] as const }] };
    const planned = planSequences({ count: 30, steps: 12, models: ["chain"], levels, random: seededRandom(3) });
    const calls = planned.flatMap((sequence) => sequence.calls);
    const refusable = calls.filter(({ mayFail }) => mayFail !== undefined);
    expect(refusable.length).toBeGreaterThan(100);
    for (const { start, end, step, parameters } of refusable)
      expect([start, end, step === 12, parameters["priority"]]).toEqual([false, false, false, 2]);
  });

  it("leaves START, END and the last step alone in their bursts", () => {
    for (const { calls } of plan()) {
      for (const call of calls) {
        const mates = calls.filter(({ burst }) => burst === call.burst);
        if (call.start === true || call.end === true || call === calls.at(-1)) expect(mates).toHaveLength(1);
      }
    }
  });
});

describe("History", () => {
  it("is saved one event a line, numbers of any size intact", () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-history-"));
    const history = new History();
    const ask = { request: "r", model: "chain", input: 2n ** 62n };
    history.record({ kind: "submit", at: 1, client: "c", attempt: 1, gateway: "g", ask });
    history.save(join(folder, "deep", "history.jsonl"));
    const lines = readFileSync(join(folder, "deep", "history.jsonl"), "utf8")
      .trim()
      .split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ ask: { request: "r", model: "chain", input: "4611686018427387904" } }),
    ]);
    rmSync(folder, { recursive: true });
  });
});
