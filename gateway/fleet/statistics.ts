/** The statistics of models: the answers of `GET /v2/models/stats` and of the paths of a model. */
import type { Announcement } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import { readReports } from "#shared/queue/admission/read-reports.js";
import type { ProcessReports } from "#shared/queue/processes/reports.js";
import { readLoads } from "#shared/queue/processes/read-loads.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { namesOf } from "./describe.js";
import type { ModelDirectory, ModelName } from "./models.js";
import { orUnavailable } from "./or-unavailable.js";
import { memoryOf, statisticsOf, totalsOf, type VersionName } from "./totals.js";

/** Gives the statistics of a version. */
type Statistics = (version: VersionName) => ReturnType<typeof statisticsOf>;

/** How long callers share what one of them has read, in ms. */
const SHARED_MS = 400;

export interface StatisticsSettings {
  readonly redis: RedisClient;
  /** The name of this gateway. */
  readonly name: string;
  /** What this gateway has counted. */
  readonly reports: Pick<ProcessReports, "parts">;
  readonly fleet: { readonly directory: ModelDirectory; readonly workers: readonly Announcement[] };
}

export class StatisticsService {
  readonly #settings: StatisticsSettings;
  /** What callers share: reports are no fresher than that, and in a large fleet they are long. */
  #shared: { readonly statistics: Promise<Statistics>; readonly until: number } | undefined;

  constructor(settings: StatisticsSettings) {
    this.#settings = settings;
  }

  get directory(): ModelDirectory {
    return this.#settings.fleet.directory;
  }

  /**
   * @param models that exist for the caller
   * @param name undefined for all models
   * @throws InferenceError in Triton's words if the model is unknown; `unavailable` while the
   *   gateway cannot ask Redis
   */
  async read(models: ModelDirectory, name?: ModelName) {
    const wanted = name === undefined ? models.all() : versionsOf(models, name);
    return { model_stats: wanted.map(await this.#statistics()) };
  }

  #statistics(): Promise<Statistics> {
    const now = performance.now();
    if (this.#shared === undefined || now >= this.#shared.until) {
      const { redis } = this.#settings;
      const statistics = orUnavailable(redis, () => this.#ask());
      const shared = { statistics, until: now + SHARED_MS };
      this.#shared = shared;
      // The next caller tries again.
      statistics.catch(() => {
        if (this.#shared === shared) this.#shared = undefined;
      });
    }
    return this.#shared.statistics;
  }

  async #ask(): Promise<Statistics> {
    const { redis, name, reports: counted, fleet } = this.#settings;
    const { workers } = fleet;
    const [{ reports, past }, loads] = await Promise.all([readReports(redis), readLoads(redis, namesOf(workers))]);
    // This gateway knows newer numbers of its own than Redis has.
    const others = reports.filter(({ process }) => process !== name);
    const totals = totalsOf([...others, ...past, ...counted.parts()]);
    const memory = memoryOf(workers, (worker) => loads.get(worker)?.load.cached ?? {});
    return (version) => statisticsOf(version, totals(version), memory(version));
  }
}

/** The versions in ascending order, also of a model whose workers have all gone lately. */
function versionsOf(models: ModelDirectory, { model, version }: ModelName): readonly VersionName[] {
  const served = models.all().filter(({ name }) => name === model);
  const found = version === undefined ? served : served.filter((one) => one.version === version);
  if (found.length > 0) return found;
  try {
    return [models.find(model, version)];
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    const text =
      served.length > 0
        ? `requested model version is not available for model '${model}'`
        : `requested model '${model}' is not available`;
    throw new InferenceError("invalid_argument", text);
  }
}
