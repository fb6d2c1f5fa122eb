import { describe, expect, it } from "vitest";
import type { GenerationSpec } from "#shared/contract/generation.js";
import type { NewGeneration } from "../engine/protocol.js";
import type { Held } from "../lane/holdings.js";
import { greedy } from "../../test/fixtures/sampling.js";
import { choicesOf, expiryOf, Stream, streamOf } from "./stream.js";

const generation = { key: "1-0", next: 4, prompt: Int32Array.of(1) } as unknown as NewGeneration;

function begin(restMs?: number): Stream {
  const held = { delivery: { entry: "1-0" }, expiresAt: 1_000 } as unknown as Held;
  const spec = { sampling: { choices: 3 }, restMs } as unknown as GenerationSpec;
  const sharer = { level: 1, tenant: "default", weight: 1 };
  return new Stream({ held, takenOver: true, spec, sharer, labels: [] });
}

const moves = {
  waiting: (stream: Stream) => stream.waitForTurn(generation),
  suspected: (stream: Stream) => stream.suspect(generation),
  generating: (stream: Stream) => stream.enterEngine(generation),
  closed: (stream: Stream) => stream.close(),
};

type Move = keyof typeof moves;

function after(path: readonly Move[]): Stream {
  const stream = begin();
  for (const move of path) moves[move](stream);
  return stream;
}

describe("a stream's life", () => {
  it.each<[path: Move[], next: number | undefined]>([
    [[], undefined],
    [["generating"], 4],
    [["generating", "closed"], undefined],
    [["waiting"], 4],
    [["waiting", "generating"], 4],
    [["waiting", "suspected"], 4],
    [["waiting", "suspected", "generating"], 4],
    [["waiting", "suspected", "closed"], undefined],
    [["waiting", "closed"], undefined],
    [["closed"], undefined],
  ])("may go %j, where its next record is %s", (path, next) => {
    const stream = after(path);
    expect(stream.state.kind).toBe(path.at(-1) ?? "preparing");
    expect(stream.next).toBe(next);
    expect(stream.closed).toBe(path.at(-1) === "closed");
  });

  it.each<[path: Move[], move: Move]>([
    [[], "suspected"],
    [["waiting"], "waiting"],
    [["generating"], "waiting"],
    [["generating"], "suspected"],
    [["generating"], "generating"],
    [["waiting", "suspected"], "waiting"],
    [["closed"], "waiting"],
    [["closed"], "generating"],
    [["closed"], "closed"],
  ])("never goes from %j to %s", (path, move) => {
    const stream = after(path);
    const { kind } = stream.state;
    expect(() => moves[move](stream)).toThrow(`a stream that is ${kind} cannot become ${move}`);
    expect(stream.state.kind).toBe(kind);
  });

  it("takes its next record from the engine, and no other", () => {
    const stream = after(["generating"]);
    expect([stream.advance(3, 7), stream.advance(5, 7)]).toEqual([false, false]);
    expect(stream.advance(4, 7)).toBe(true);
    expect([stream.next, stream.silentSince]).toEqual([5, 7]);
    stream.close();
    expect(stream.advance(5, 8)).toBe(false);
  });
});

describe("expiryOf", () => {
  const facts = (next: number | undefined, restMs?: number) => {
    const { held, spec } = begin(restMs);
    return { held, spec, next };
  };

  it.each([
    ["is not known before the log has been read", facts(undefined, 50), Infinity],
    ["is the deadline for a stream without a token", facts(0, 50), 1_000],
    ["is none for a stream with a token", facts(1), Infinity],
    ["is the client's limit of the whole answer", facts(1, 50), 1_050],
  ])("%s", (_, stream, expected) => {
    expect(expiryOf(stream)).toBe(expected);
  });
});

it("counts the choices of all streams", () => {
  expect(choicesOf(new Map([1, 2].map((i) => [`${i}-0`, begin()])))).toBe(6);
});

describe("the share of a stream's tenant", () => {
  const generation = { prompt: { kind: "tokens", tokens: [1] }, sampling: { ...greedy } };
  const usual = { level: 1, weight: 1 };
  it.each([
    ["is that of the entry", { share: { level: 9, weight: 3 } }, { level: 9, weight: 3 }],
    ["is the usual one for an entry of an earlier gateway", {}, usual],
    ["is the usual one for an entry that no gateway has written", { share: { level: 1, weight: -1 } }, usual],
  ])("%s", (_, meta, share) => {
    const held = { delivery: { tenant: "acme" }, request: { meta: { generation, ...meta } } } as unknown as Held;
    expect(streamOf(held, false).sharer).toEqual({ tenant: "acme", ...share });
  });
});
