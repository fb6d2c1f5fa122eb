/** The answer of `GET /v2/fleet/history`, from the points that observers append. */
import { measures, readPoints, STEP_MS, type Point } from "#shared/queue/admission/history.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { orUnavailable } from "./or-unavailable.js";

const MS_PER_MINUTE = 60_000;

export interface FleetHistory {
  readonly step_ms: number;
  /** Redis ms, ascending. */
  readonly at: readonly number[];
  /** By measure and model: a value for each time; null if nothing is known of it. */
  readonly series: Readonly<Record<string, Readonly<Record<string, readonly (number | null)[]>>>>;
}

/**
 * @param models undefined for all
 * @throws InferenceError `unavailable` while the gateway cannot ask Redis
 */
export async function historyOf(
  redis: RedisClient,
  minutes: number,
  models: readonly string[] | undefined,
): Promise<FleetHistory> {
  const most = (minutes * MS_PER_MINUTE) / STEP_MS;
  const points = await orUnavailable(redis, () => readPoints(redis, most));
  const newest = points.at(-1)?.at ?? 0;
  return seriesOf(
    withGaps(points)
      .filter(({ at }) => at > newest - minutes * MS_PER_MINUTE)
      .slice(-most),
    models,
  );
}

/** Puts points without values in place of points that no observer has made. */
function withGaps(points: readonly Point[]): Point[] {
  return points.flatMap((point, i) => {
    const before = points[i - 1]?.at ?? point.at;
    const missing = Math.max(0, Math.round((point.at - before) / STEP_MS) - 1);
    // A long pause is as long as the answer at most.
    const gaps = Array.from({ length: Math.min(missing, (30 * MS_PER_MINUTE) / STEP_MS) }, (_, n) => ({
      at: point.at - (n + 1) * STEP_MS,
      models: {},
    }));
    return [...gaps.reverse(), point];
  });
}

function seriesOf(points: readonly Point[], wanted: readonly string[] | undefined): FleetHistory {
  const models = wanted ?? [...new Set(points.flatMap((point) => Object.keys(point.models)))].toSorted();
  const valuesOf = (place: number) =>
    Object.fromEntries(models.map((model) => [model, points.map((point) => point.models[model]?.[place] ?? null)]));
  return {
    step_ms: STEP_MS,
    at: points.map(({ at }) => at),
    series: Object.fromEntries(measures.map((measure, place) => [measure, valuesOf(place)])),
  };
}
