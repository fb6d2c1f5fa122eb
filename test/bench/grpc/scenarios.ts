/** The measurements of gRPC: a row each, beside HTTP's on the same fleet. */
import { join } from "node:path";
import { makeRepository } from "../../support/fleet/repository.js";
import { startBenchFleet, parts, type BenchFleet } from "../support/fleet.js";
import { benchRepository, cheap, tiny } from "../support/models.js";
import type { Scenarios } from "../support/rounds.js";
import { ratio, type Wanted } from "../support/statistics.js";
import { measureFleet, type FleetResult, type Timing } from "../steps/scenarios.js";
import { measureIdle, type IdleCost } from "./idle.js";
import { measureLarge, type LargeCost } from "./large.js";
import { makeSharedModels, measureShared, type SharedCost } from "./shared.js";
import { measureTokens, type TokensCost } from "./tokens.js";

export interface GrpcRound {
  /** Steps over HTTP that node's server reads, and that the gateway's own parser reads. */
  http: FleetResult;
  httpOwn: FleetResult;
  calls: FleetResult;
  standing: FleetResult;
  shared: SharedCost;
  tokensSse: TokensCost;
  tokensGrpc: TokensCost;
  largeGrpc: LargeCost;
  idleGrpc: IdleCost;
}

export const grpcNames: readonly (keyof GrpcRound)[] = [
  "http",
  "httpOwn",
  "calls",
  "standing",
  "shared",
  "tokensSse",
  "tokensGrpc",
  "largeGrpc",
  "idleGrpc",
];

const all = (result: FleetResult | undefined): number | undefined =>
  result && parts.reduce((sum, part) => sum + result.cpuUs[part], 0);
const gateway = (result: FleetResult | undefined): number | undefined => result?.cpuUs.gateway;
const less = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : a - b;

export const grpcFigures: readonly Wanted<GrpcRound>[] = [
  { name: "lstm-128, 64 connections, HTTP read by node: CPU of the gateway, µs/step", of: ({ http }) => gateway(http) },
  { name: "  of all servers", of: ({ http }) => all(http) },
  { name: "HTTP read by the own parser: CPU of the gateway, µs/step", of: ({ httpOwn }) => gateway(httpOwn) },
  { name: "  of all servers", of: ({ httpOwn }) => all(httpOwn) },
  { name: "gRPC, calls: CPU of the gateway, µs/step", of: ({ calls }) => gateway(calls) },
  { name: "  more than HTTP read by node", most: 30, of: ({ calls, http }) => less(gateway(calls), gateway(http)) },
  { name: "  of all servers ÷ HTTP's", most: 1.15, of: ({ calls, http }) => ratio(all(calls), all(http)) },
  { name: "gRPC, standing streams: CPU of the gateway, µs/step", of: ({ standing }) => gateway(standing) },
  { name: "  of all servers ÷ HTTP's", most: 1, of: ({ standing, http }) => ratio(all(standing), all(http)) },
  { name: "63 sequences on one stream without order: p99 alone, ms", of: ({ shared }) => shared?.aloneMs.p99 },
  {
    name: "  beside a slow one ÷ alone",
    most: 1.5,
    of: ({ shared }) => ratio(shared?.besideMs.p99, shared?.aloneMs.p99),
  },
  { name: "  the same with order", of: ({ shared }) => ratio(shared?.orderedMs.p99, shared?.aloneMs.p99) },
  { name: "gen-cheap, 64 streams, SSE: CPU of all servers, µs/token", of: ({ tokensSse }) => tokensSse?.cpuUs },
  {
    name: "  ModelStreamInfer ÷ SSE",
    most: 1.2,
    of: ({ tokensGrpc, tokensSse }) => ratio(tokensGrpc?.cpuUs, tokensSse?.cpuUs),
  },
  { name: "8 MiB up, 20 ms between client and gateway: ms", most: 400, of: ({ largeGrpc }) => largeGrpc?.ms },
  { name: "10,000 idle streams: KB of the gateway each", most: 40, of: ({ idleGrpc }) => idleGrpc?.kilobytes },
  { name: "  commands of Redis a second, over none", most: 5, of: ({ idleGrpc }) => idleGrpc?.commands },
];

export interface GrpcPlan {
  readonly folder: string;
  readonly expected: ReadonlyMap<number, string>;
  readonly timing: Timing;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

export async function grpcScenarios({ folder, expected, timing, onClose }: GrpcPlan): Promise<Scenarios<GrpcRound>> {
  const repository = benchRepository(join(folder, "models"));
  const start = async (name: string, common: Readonly<Record<string, string>>): Promise<BenchFleet> => {
    const fleet = await startBenchFleet({
      folder: join(folder, name),
      repository: `${repository}:${join(folder, "others")}`,
      models: [tiny.name, cheap.name, "echo-bytes"],
      workers: 1,
      env: { BATON_LOG_LEVEL: "debug" },
      common,
      grpc: true,
    });
    onClose(() => fleet.dispose());
    return fleet;
  };

  makeRepository(join(folder, "others"), [cheap.name, "echo-bytes"]);
  makeSharedModels(join(folder, "others"));
  const byNode = await start("node", { BATON_SOCKET_PARSER: "false" });
  const own = await start("own", {});
  const steps = (fleet: BenchFleet, way?: "calls" | "stream") =>
    measureFleet({ fleet, expected, timing }, tiny, 64, undefined, way);
  return {
    http: () => steps(byNode),
    httpOwn: () => steps(own),
    calls: () => steps(byNode, "calls"),
    standing: () => steps(byNode, "stream"),
    shared: () => measureShared(byNode, timing),
    tokensSse: () => measureTokens(byNode, "sse", timing),
    tokensGrpc: () => measureTokens(byNode, "grpc", timing),
    largeGrpc: () => measureLarge(byNode.grpcPort),
    idleGrpc: () => measureIdle(byNode),
  };
}
