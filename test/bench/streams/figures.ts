/** The figures of generation. */
import { parts } from "../support/fleet.js";
import { cheap, demo, long, wide } from "../support/models.js";
import { median, type Percentiles, ratio, type Wanted } from "../support/statistics.js";
import type { StreamResult, StreamRound } from "./scenarios.js";
import { HISTORIES, type Takeover } from "./takeover.js";

type Round = Partial<StreamRound>;
type Figures = readonly Wanted<StreamRound>[];

interface Pace {
  readonly tokensPerSecond: number;
  readonly firstTokenMs: Percentiles;
  readonly betweenTokensMs: Percentiles;
  readonly meanBetweenMs: Percentiles;
}

const shares = ["p50", "p95", "p99"] as const;

function paceOf(of: (round: Round) => Pace | undefined): Figures {
  return [
    ...shares.map((share) => ({
      name: `  first token ${share}, ms`,
      of: (round: Round) => of(round)?.firstTokenMs[share],
    })),
    ...shares.map((share) => ({
      name: `  between tokens ${share}, ms`,
      of: (round: Round) => of(round)?.betweenTokensMs[share],
    })),
    ...shares.map((share) => ({
      name: `  a stream's mean between tokens ${share}, ms`,
      of: (round: Round) => of(round)?.meanBetweenMs[share],
    })),
  ];
}

function cpuOf(of: (round: Round) => StreamResult | undefined): Figures {
  return [
    ...[...parts, "load" as const].map((part) => ({
      name: `  CPU of ${part}, µs/token`,
      of: (round: Round) => of(round)?.cpuUs[part],
    })),
    ...(["gateway", "workers"] as const).map((part) => ({
      name: `  V8's pauses in ${part}, share of time`,
      of: (round: Round) => of(round)?.paused?.[part],
    })),
  ];
}

function against(
  what: string,
  fleet: (round: Round) => StreamResult | undefined,
  bare: (round: Round) => (Pace & { readonly cpuUs: number }) | undefined,
): Figures {
  return [
    { name: `${what}, SSE: tokens/s`, of: (round) => fleet(round)?.tokensPerSecond },
    ...paceOf(fleet),
    ...cpuOf(fleet),
    { name: `${what}, bare loop: tokens/s`, of: (round) => bare(round)?.tokensPerSecond },
    ...paceOf(bare),
    { name: "  CPU, µs/token", of: (round) => bare(round)?.cpuUs },
    {
      name: `${what}, fleet ÷ bare: tokens/s`,
      of: (round) => ratio(fleet(round)?.tokensPerSecond, bare(round)?.tokensPerSecond),
    },
    ...shares.map((share) => ({
      name: `  first token ${share}`,
      of: (round: Round) => ratio(fleet(round)?.firstTokenMs[share], bare(round)?.firstTokenMs[share]),
    })),
    ...shares.map((share) => ({
      name: `  between tokens ${share}`,
      of: (round: Round) => ratio(fleet(round)?.betweenTokensMs[share], bare(round)?.betweenTokensMs[share]),
    })),
    ...shares.map((share) => ({
      name: `  a stream's mean between tokens ${share}`,
      of: (round: Round) => ratio(fleet(round)?.meanBetweenMs[share], bare(round)?.meanBetweenMs[share]),
    })),
  ];
}

type Pair<Result> = (round: Round) => readonly [one: Result | undefined, sixteen: Result | undefined];

/** The figures of a single stream and of sixteen, and the gain from the batch. */
function paired(name: string, fleet: Pair<StreamResult>, bare: Pair<Pace & { readonly cpuUs: number }>): Figures {
  const gain = (of: Pair<Pace>) => (round: Round) => {
    const [one, sixteen] = of(round);
    return ratio(sixteen?.tokensPerSecond, one?.tokensPerSecond);
  };
  return [
    ...against(
      `${name}, 1 stream`,
      (round) => fleet(round)[0],
      (round) => bare(round)[0],
    ),
    ...against(
      `${name}, 16 streams`,
      (round) => fleet(round)[1],
      (round) => bare(round)[1],
    ),
    { name: `${name}, tokens/s: 16 streams ÷ 1`, goal: "≥ 5", of: gain(fleet) },
    { name: "  the same of the bare loop", of: gain(bare) },
  ];
}

function takeoverOf(history: number): Figures {
  const all = (of: (kill: Takeover) => number, one: (values: readonly number[]) => number) => (round: Round) => {
    const kills = round.takeover?.takeovers.find((takeover) => takeover.history === history)?.kills;
    return kills && one(kills.map(of));
  };
  const most = (values: readonly number[]) => Math.max(...values);
  const passes = ({ takeover }: Round) => takeover?.recompute.find((one) => one.history === history);
  return [
    {
      name: `${long.name}, worker killed at ${history} tokens: longest pause − lease, ms`,
      goal: "≤ 200",
      of: all(({ pauseBeyondLeaseMs }) => pauseBeyondLeaseMs, most),
    },
    { name: "  from the lease's end to a new token, ms", of: all(({ costMs }) => costMs, median) },
    { name: "  tokens that were there", of: all(({ logged }) => logged, median) },
    { name: "  bare prefill of them in one pass, ms", of: (round) => passes(round)?.wholeMs },
    { name: "  bare prefill in passes of 256, ms", of: (round) => passes(round)?.chunksMs },
  ];
}

export const streamFigures: Figures = [
  ...paired(
    demo.name,
    ({ streamOne, streamSixteen }) => [streamOne, streamSixteen],
    ({ bareStreamOne, bareStreamSixteen }) => [bareStreamOne, bareStreamSixteen],
  ),
  ...paired(
    wide.name,
    ({ wideOne, wideSixteen }) => [wideOne, wideSixteen],
    ({ bareWideOne, bareWideSixteen }) => [bareWideOne, bareWideSixteen],
  ),
  { name: `${cheap.name}, 64 streams, SSE: tokens/s`, goal: "≥ 20000", of: ({ sse }) => sse?.tokensPerSecond },
  ...paceOf(({ sse }) => sse),
  ...cpuOf(({ sse }) => sse),
  {
    name: `${cheap.name}, 64 streams, kept in JetStream, too: tokens/s`,
    of: ({ captured }) => captured?.tokensPerSecond,
  },
  ...paceOf(({ captured }) => captured),
  ...cpuOf(({ captured }) => captured),
  {
    name: `${cheap.name}, with JetStream ÷ without: tokens/s`,
    of: ({ sse, captured }) => ratio(captured?.tokensPerSecond, sse?.tokensPerSecond),
  },
  { name: `${cheap.name}, batch 64, bare loop: tokens/s`, of: ({ bareSse }) => bareSse?.tokensPerSecond },
  { name: "  CPU, µs/token", of: ({ bareSse }) => bareSse?.cpuUs },
  ...HISTORIES.flatMap(takeoverOf),
];
