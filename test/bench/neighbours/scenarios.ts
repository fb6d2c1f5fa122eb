/**
 * What a well-behaved tenant notices of another tenant that floods the same gateway. All share the
 * machine's cores, so the baseline runs beside a process that uses as much CPU as the flood's
 * client.
 */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { writeTenant } from "#shared/queue/owners/write-owner.js";
import { Keys } from "../../../gateway/auth/keys.js";
import { usualScopes } from "../../../gateway/auth/owner/scopes.js";
import { startFleet } from "../../support/fleet/fleet.js";
import { silentLog } from "../../support/silent.js";
import { benchPepper, keyedSettings } from "../queue/limited-key.js";
import { runChild } from "../support/child.js";
import type { Scenarios } from "../support/rounds.js";
import { ratio, type Wanted } from "../support/statistics.js";
import type { BurnerJob } from "./burner.js";
import type { FloodJob, FloodKind, FloodResult } from "./flood.js";
import type { PacedJob, PacedResult } from "./paced.js";

export interface Beside {
  /** Of the well-behaved tenant, in ms. */
  readonly p99Ms: number;
  readonly baselineP99Ms: number;
  readonly errors: number;
  readonly flood: FloodResult;
  readonly checked: number;
  readonly wrong: number;
}

/** Answers of 200 of two tenants of weights 1 and 3 that always wait for more. */
export interface Shared {
  readonly light: number;
  readonly heavy: number;
  readonly checked: number;
  readonly wrong: number;
}

export interface NeighboursRound {
  readonly sharedSteps: Shared;
  readonly sharedGenerations: Shared;
  readonly besideRequests: Beside;
  readonly besideGenerations: Beside;
  readonly besideBodies: Beside;
  readonly besideGuesses: Beside;
}

const kinds = {
  besideRequests: "requests",
  besideGenerations: "generations",
  besideBodies: "bodies",
  besideGuesses: "guesses",
} as const satisfies Readonly<Partial<Record<keyof NeighboursRound, FloodKind>>>;
const besides = Object.keys(kinds) as (keyof typeof kinds)[];
const shares = ["sharedSteps", "sharedGenerations"] as const;
export const neighboursNames: readonly (keyof NeighboursRound)[] = [...shares, ...besides];

const besideFigures: readonly Wanted<NeighboursRound>[] = besides.flatMap((name) => [
  {
    name: `beside ${kinds[name]}: p99 ÷ baseline`,
    most: 1.5,
    of: (round) => ratio(round[name]?.p99Ms, round[name]?.baselineP99Ms),
  },
  { name: "  errors", most: 0, of: (round) => round[name]?.errors },
  { name: "  baseline p99, ms", of: (round) => round[name]?.baselineP99Ms },
]);

const shareFigures: readonly Wanted<NeighboursRound>[] = shares.map((name) => ({
  name: `${name === "sharedSteps" ? "steps" : "generations"} of tenants of weights 1 and 3 over 10 s: share off by`,
  most: 0.2,
  of(round) {
    const share = ratio(round[name]?.light, round[name]?.heavy);
    return share && Math.abs(3 * share - 1);
  },
}));

export const neighboursFigures = [...shareFigures, ...besideFigures];

/** After this time, in ms, the work of a flood is over. */
const REST_MS = 5_000;
/** Over which shares are measured, in ms. */
const SHARED_MS = 10_000;
/** Requests of the well-behaved tenant. */
const PER_SECOND = 50;

export interface NeighboursPlan {
  readonly folder: string;
  readonly timing: { readonly warmupMs: number; readonly measureMs: number };
  readonly onClose: (close: () => Promise<unknown>) => void;
  readonly progress: (line: string) => void;
}

export async function neighboursScenarios(plan: NeighboursPlan): Promise<Scenarios<NeighboursRound>> {
  const { timing, onClose, progress } = plan;
  const folder = mkdtempSync(join(plan.folder, "neighbours-"));
  // The limits that an operator would give to tenants who do not know each other.
  const limits = { queued_requests: 500, concurrent_streams: 32 };
  const env = { ...keyedSettings(folder), BATON_DEFAULT_LIMITS: JSON.stringify(limits) };
  const models = ["simple", "gen-mha"];
  const fleet = await startFleet({ gateways: 1, workers: 1, models, direct: true, env, folder });
  onClose(() => fleet.dispose());
  await fleet.whenServing();
  const redis = connectRedis({ url: fleet.redis.url, name: "bench", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
  const keyOf = async (tenant: string, weight = 1, ofTenant: object = limits): Promise<string> => {
    const to = JSON.stringify({ id: tenant, weight, limits: ofTenant });
    await writeTenant(redis, tenant, { from: undefined, to });
    const terms = { tenant, name: "", scopes: usualScopes, models: ["*"], livesMs: undefined, createdBy: undefined };
    return (await new Keys({ redis, pepper: benchPepper }).make(terms)).text;
  };
  const [quiet, loud] = [await keyOf("quiet"), await keyOf("loud")];
  const backlog = { queued_requests: 2_000, concurrent_streams: 2_000 };
  const [light, heavy] = [await keyOf("light", 1, backlog), await keyOf("heavy", 3, backlog)];
  redis.disconnect();
  const port = Number(new URL(fleet.urls[0] ?? "").port);

  const paced = (beside: (measureMs: number) => Promise<unknown>) => {
    const job: PacedJob = { port, key: quiet, perSecond: PER_SECOND, ...timing };
    const child = runChild<PacedJob, PacedResult>(new URL("./paced.js", import.meta.url), job);
    return Promise.all([child, beside(timing.warmupMs + timing.measureMs)] as const);
  };
  const measure = async (kind: FloodKind): Promise<Beside> => {
    let flood: FloodResult = { statuses: {}, cpuShare: 0 };
    const [beside] = await paced(async (measureMs) => {
      const job: FloodJob = { kind, port, key: loud, measureMs };
      flood = await runChild<FloodJob, FloodResult>(new URL("./flood.js", import.meta.url), job);
    });
    progress(`  ${JSON.stringify(flood)}; ${JSON.stringify(beside.latencyMs)}, ${beside.errors} errors`);
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    const [alone] = await paced((measureMs) => {
      const job: BurnerJob = { share: flood.cpuShare, measureMs };
      return runChild<BurnerJob, object>(new URL("./burner.js", import.meta.url), job);
    });
    progress(`  baseline p99 ${alone.latencyMs.p99.toFixed(1)} ms, p50 ${alone.latencyMs.p50.toFixed(1)} ms`);
    return {
      p99Ms: beside.latencyMs.p99,
      baselineP99Ms: alone.latencyMs.p99,
      errors: beside.errors + alone.errors,
      flood,
      checked: beside.checked + alone.checked,
      wrong: beside.wrong + alone.wrong,
    };
  };
  const share = async (kind: FloodKind): Promise<Shared> => {
    const answersOf = async (key: string): Promise<number> => {
      const job: FloodJob = { kind, port, key, measureMs: SHARED_MS };
      const { statuses } = await runChild<FloodJob, FloodResult>(new URL("./flood.js", import.meta.url), job);
      return statuses["200"] ?? 0;
    };
    const [few, many] = await Promise.all([answersOf(light), answersOf(heavy)]);
    progress(`  light ${few}, heavy ${many}`);
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    return { light: few, heavy: many, checked: 0, wrong: 0 };
  };
  return {
    sharedSteps: () => share("requests"),
    sharedGenerations: () => share("generations"),
    besideRequests: () => measure("requests"),
    besideGenerations: () => measure("generations"),
    besideBodies: () => measure("bodies"),
    besideGuesses: () => measure("guesses"),
  };
}
