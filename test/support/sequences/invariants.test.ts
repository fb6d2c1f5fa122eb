/**
 * A checker that cannot fail proves nothing, so the tests give each invariant a history to flag,
 * beside a history to pass.
 */
import { describe, expect, it } from "vitest";
import { chainStep } from "../../fixtures/models/chain-reference.js";
import type { Ask } from "../doors/ask.js";
import { check, type Evidence } from "./invariants.js";
import type { CommitSample, Floor } from "./facts.js";
import { chainsInARow } from "./references.js";
import type { Ended, Event } from "./history.js";

const limits = { rssBytes: 100, descriptors: 10, usedMemoryBytes: 100, natsPendingBytes: 100 };
const quiet = [{ at: 0, name: "worker-1", what: "rssBytes", value: 50 }] as const;

const floor = (over: Partial<Floor> = {}): Floor => ({
  readyEntries: 0,
  pendingEntries: 0,
  waitKeys: [],
  runsKeys: [],
  keysWithoutTtl: [],
  strangeKeys: [],
  dead: [],
  outcomeRecords: 3,
  openOutcomes: [],
  sequences: new Map([["u7", 3]]),
  ...over,
});

const inputs = [5n, 6n, 7n];

function outputs(list: readonly bigint[]): bigint[] {
  let state: bigint | null = null;
  return list.map((input) => (state = chainStep(state, input)));
}

const ask = (step: number, over: Partial<Ask> = {}): Ask => ({
  request: `r-${step}`,
  model: "chain",
  sequence: "u7",
  step,
  burst: step,
  input: inputs[step - 1] ?? 0n,
  start: step === 1,
  end: false,
  ...over,
});

const submit = (asked: Ask, attempt = 1): Event => ({
  kind: "submit",
  at: 0,
  client: "c",
  attempt,
  gateway: "g",
  ask: asked,
});

const ok = (request: string, output: bigint, attempt = 1, echoedId = request): Ended => ({
  kind: "ok",
  at: 1,
  client: "c",
  attempt,
  request,
  output: String(output),
  echoedId,
});

const fail = (request: string, code: string): Ended => ({
  kind: "fail",
  at: 1,
  client: "c",
  attempt: 1,
  request,
  status: 500,
  code,
});

const unknown = (request: string): Ended => ({ kind: "unknown", at: 1, client: "c", attempt: 1, request, why: "cut" });

/** Three steps of a sequence, with these outputs as answers. */
function answered(given: readonly bigint[], over: Partial<Ask>[] = []): Event[] {
  return given.flatMap((output, i) => [submit(ask(i + 1, over[i])), ok(`r-${i + 1}`, output)]);
}

function found(events: readonly Event[], over: Partial<Evidence> = {}): string[] {
  const violations = check({ events, floor: floor(), commits: [], resources: quiet, limits, ...over });
  return [...new Set(violations.map(({ invariant }) => invariant))];
}

const sound = answered(outputs(inputs));

/** The number that the second version of `chain` adds to its outputs. */
const MARK = 0x0123456789abcdefn;

/** The same event, with an answer by this version. */
const byVersion = (version: string) => (event: Event) => (event.kind === "ok" ? { ...event, version } : event);

describe("check", () => {
  it("finds nothing in a sound history, retries, re-reads and all", () => {
    const events = [
      submit(ask(1), 1),
      unknown("r-1"),
      ...sound,
      submit(ask(2), 2),
      ok("r-2", outputs(inputs)[1] ?? 0n, 2),
    ];
    expect(found(events)).toEqual([]);
  });

  it.each<[string, readonly Event[], Partial<Evidence>, string[]]>([
    [
      "an open outcome record",
      sound,
      { floor: floor({ openOutcomes: ["out:{chain:1:0}:x"] }) },
      ["every request ends"],
    ],
    [
      "a loss, politely put",
      [...sound, submit(ask(4)), fail("r-4", "state_lost")],
      {},
      ["every request ends", "nobody else pays"],
    ],
    ["a client that still waits", [...sound, submit(ask(1), 9)], {}, ["every request ends"]],
    ["two outcomes of one request", [...sound, submit(ask(3), 2), ok("r-3", 1n, 2)], {}, ["one outcome"]],
    [
      "a result, later an error",
      [...sound, submit(ask(3), 2), fail("r-3", "internal")],
      {},
      ["one outcome", "nobody else pays"],
    ],
    ["an ending without a submit", [...sound, ok("r-9", 1n)], {}, ["no phantom"]],
    ["another's answer", [...sound.slice(0, 5), ok("r-3", outputs(inputs)[2] ?? 0n, 1, "r-2")], {}, ["no phantom"]],
    ["more outcomes than requests", sound, { floor: floor({ outcomeRecords: 4 }) }, ["no phantom"]],
    ["an unknown that never resolves", [...sound, submit(ask(4)), unknown("r-4")], {}, ["unknowns resolve"]],
    [
      "a second effect that only Redis shows",
      sound,
      { floor: floor({ sequences: new Map([["u7", 4]]) }) },
      ["unknowns resolve"],
    ],
    ["an ended sequence still there", answered(outputs(inputs), [{}, {}, { end: true }]), {}, ["unknowns resolve"]],
    ["a wrong stateless answer", answered(outputs(inputs), [{ answer: "3" }]), {}, ["state is the fold"]],
    [
      "a version that changes in mid-life",
      [...sound.slice(0, 5).map(byVersion("1")), byVersion("2")(ok("r-3", (outputs(inputs)[2] ?? 0n) + MARK))],
      {},
      ["one version to the end"],
    ],
    [
      "a commit from an entry that was lost",
      sound,
      { commits: [at(2, "w1", "9-1"), at(3, "w2", "9-0")] },
      ["never back"],
    ],
    ["a step count that goes back", sound, { commits: [at(2, "w1", "2-0"), at(1, "w2", "1-0")] }, ["never back"]],
    ["one step, two committers", sound, { commits: [at(2, "w1", "2-0"), at(2, "w2", "2-0")] }, ["one committer"]],
    ["one step, two checkpoints", sound, { commits: [at(2, "w1", "2-0"), at(2, "w1", "3-0")] }, ["one committer"]],
    ["ready", sound, { floor: floor({ readyEntries: 1 }) }, ["nothing left over"]],
    ["pending", sound, { floor: floor({ pendingEntries: 1 }) }, ["nothing left over"]],
    ["waiting", sound, { floor: floor({ waitKeys: ["wait:x"] }) }, ["nothing left over"]],
    ["runs", sound, { floor: floor({ runsKeys: ["runs:x"] }) }, ["nothing left over"]],
    ["no TTL", sound, { floor: floor({ keysWithoutTtl: ["state:x"] }) }, ["nothing left over"]],
    ["strange keys", sound, { floor: floor({ strangeKeys: ["foo"] }) }, ["nothing left over"]],
    ["an innocent set aside", sound, { floor: floor({ dead: [letter("u7")] }) }, ["nothing left over"]],
    ["too much", sound, { resources: [{ at: 0, name: "w", what: "descriptors", value: 11 }] }, ["bounded"]],
    ["nothing sampled", sound, { resources: [] }, ["bounded"]],
    ["a failure that nobody asked for", [...sound, submit(ask(4)), fail("r-4", "internal")], {}, ["nobody else pays"]],
    [
      "poison that was answered",
      answered(outputs(inputs), [{}, {}, { expects: "poison_request" }]),
      {},
      ["nothing left over", "nobody else pays"],
    ],
  ])("flags %s", (_, events, over, expected) => {
    expect(found(events, over)).toEqual(expected);
  });

  it("counts each attempt without a key as a request", () => {
    const plain = { request: "s-1", model: "simple", unkeyed: true } as const;
    const events = [...sound, submit(plain), unknown("s-1"), submit(plain, 2), ok("s-1", 1n, 2)];
    expect(found(events, { floor: floor({ outcomeRecords: 5 }) })).toEqual([]);
    expect(found(events, { floor: floor({ outcomeRecords: 6 }) })).toEqual(["no phantom"]);
  });

  it("takes poison, its refusal and what follows it as they were planted, once", () => {
    const [first, second] = [ask(3, { expects: "poison_request" }), ask(4, { expects: "sequence_start_required" })];
    const events = [
      ...sound.slice(0, 4),
      submit(first),
      fail("r-3", "poison_request"),
      submit(second),
      fail("r-4", "sequence_start_required"),
    ];
    const once = floor({ dead: [letter("u7")], sequences: new Map() });
    expect(found(events, { floor: once })).toEqual([]);
    expect(found(events, { floor: floor({ dead: [], sequences: new Map() }) })).toEqual(["nothing left over"]);
    expect(found(events, { floor: floor({ dead: [letter("u7"), letter("u7")], sequences: new Map() }) })).toEqual([
      "nothing left over",
    ]);
  });

  it("says where in the sequence a step was lost", () => {
    const events = [...sound.slice(0, 2), submit(ask(2)), unknown("r-2"), submit(ask(3)), ok("r-3", 1n)];
    const [violation] = check({ events, floor: floor(), commits: [], resources: quiet, limits }).filter(
      ({ invariant }) => invariant === "unknowns resolve",
    );
    expect(violation?.what).toContain("lost middle");
  });

  it("leaves sequences that begin anew out of what never goes back and has one committer, and counts their steps from the last END", () => {
    const [a, b] = [chainStep(null, 5n), chainStep(null, 6n)];
    const events = answered([a, b], [{ end: true }, { start: true }]);
    const commits = [at(2, "w1", "1-0"), at(1, "w2", "2-0")];
    expect(found(events, { commits, floor: floor({ outcomeRecords: 2, sequences: new Map([["u7", 1]]) }) })).toEqual(
      [],
    );
  });
});

describe("stateIsFold", () => {
  const what = (given: readonly bigint[], over: Partial<Ask>[] = []) => {
    const events = answered(given, over);
    const violations = check({ events, floor: floor(), commits: [], resources: quiet, limits });
    return violations.filter(({ invariant }) => invariant === "state is the fold").map((violation) => violation.what);
  };
  const [a = 0n, b = 0n, c = 0n] = outputs(inputs);
  const last = (list: readonly bigint[]) => outputs(list).at(-1) ?? 0n;

  it.each<[string, bigint[], RegExp]>([
    ["lost", [a, b, last([5n, 7n])], /step 3.*lost the step 1 before/],
    ["doubled", [a, b, last([5n, 6n, 6n, 7n])], /step 3.*doubled the step 1 before/],
    ["doubled itself", [a, last([5n, 6n, 6n]), c], /step 2.*doubled this step/],
    ["swapped", [a, b, last([6n, 5n, 7n])], /step 3.*swapped the step 2 before/],
    ["reset", [a, b, last([7n])], /state lost: began from the initial state/],
    ["foreign", [a, b, 12345n], /no single/],
  ])("names a step that was %s", (_, given, expected) => {
    expect(what(given)).toEqual([expect.stringMatching(expected)]);
  });

  it("takes either order inside a burst, and no other", () => {
    const [swappedC = 0n, swappedB = 0n] = outputs([5n, 7n, 6n]).slice(1);
    const together = [{}, { burst: 2 }, { burst: 2 }];
    expect(what([a, b, c], together)).toEqual([]);
    expect(what([a, swappedB, swappedC], together)).toEqual([]);
    expect(what([a, swappedB, swappedC])).toHaveLength(1);
    expect(what([a, b, swappedC], together)).toHaveLength(1);
  });

  it("takes the steps of a burst in their order alone if they name their numbers", () => {
    const [swappedC = 0n, swappedB = 0n] = outputs([5n, 7n, 6n]).slice(1);
    const numbered = { burst: 2, numbered: true } as const;
    expect(what([a, b, c], [{}, numbered, numbered])).toEqual([]);
    expect(what([a, swappedB, swappedC], [{}, numbered, numbered])).toHaveLength(1);
  });

  it("takes a request that a policy refused as without effect, and flags its effect", () => {
    const mayFail = ["queue_full"] as const;
    const refused = [...answered([a]), submit(ask(2, { mayFail })), fail("r-2", "queue_full"), submit(ask(3))];
    const calm = { floor: floor({ outcomeRecords: 2 }) };
    expect(found([...refused, ok("r-3", last([5n, 7n]))], calm)).toEqual([]);
    expect(found([...refused, ok("r-3", c)], calm)).toEqual(["state is the fold"]);
    const unplanned = [...answered([a]), submit(ask(2)), fail("r-2", "queue_full")];
    expect(found(unplanned, calm)).toEqual(["nobody else pays"]);
  });

  it("folds through all steps of a model that has several", () => {
    const { step, output } = chainsInARow(2);
    const inner = outputs([5n, 6n]);
    const both = [step(null, 5n), step(step(null, 5n), 6n)].map((state) => output(state, undefined));
    expect(both).toEqual(outputs(inner));
  });

  it("may begin anew with another version", () => {
    const [a, b] = [chainStep(null, 5n), BigInt.asIntN(64, chainStep(null, 6n) + MARK)];
    const [one, first, two, second] = answered([a, b], [{ end: true }, { start: true }]);
    if (!one || !first || !two || !second) throw new Error("two steps, each with its answer");
    const events = [one, byVersion("1")(first), two, byVersion("2")(second)];
    const calm = floor({ outcomeRecords: 2, sequences: new Map([["u7", 1]]) });
    expect(found(events, { floor: calm })).toEqual([]);
  });

  it("begins anew at a START", () => {
    expect(what([a, chainStep(null, 6n), last([6n, 7n])], [{}, { start: true }, {}])).toEqual([]);
  });
});

function at(done: number, worker: string, entry: string): CommitSample {
  return { at: done, sequence: "u7", done, worker, entry };
}

function letter(sequence: string) {
  return { sequence, step: 3, reason: "poison_request", runs: 3 };
}
