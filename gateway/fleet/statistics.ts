/** The statistics of models: the answers of `GET /v2/models/stats` and of the paths of a model. */
import { InferenceError } from "#shared/errors.js";
import { readReports } from "#shared/queue/admission/read-reports.js";
import type { ReportPart } from "#shared/queue/pieces/report.js";
import type { ProcessReports } from "#shared/queue/processes/reports.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { ModelDirectory, ModelName } from "./models.js";
import { orUnavailable } from "./or-unavailable.js";
import { statisticsOf, totalsOf, type VersionName } from "./totals.js";

type Totals = ReturnType<typeof totalsOf>;

/** How long callers share what one of them has read, in ms. */
const SHARED_MS = 400;

export interface StatisticsSettings {
  readonly redis: RedisClient;
  /** The name of this gateway. */
  readonly name: string;
  /** What this gateway has counted. */
  readonly reports: Pick<ProcessReports, "parts">;
  readonly fleet: { readonly directory: ModelDirectory };
}

export class StatisticsService {
  readonly #settings: StatisticsSettings;
  /** What callers share: reports are no fresher than that, and in a large fleet they are long. */
  #shared: { readonly totals: Promise<Totals>; readonly until: number } | undefined;

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
    const totals = await this.#totals();
    return { model_stats: wanted.map((version) => statisticsOf(version, totals(version))) };
  }

  #totals(): Promise<Totals> {
    const now = performance.now();
    if (this.#shared === undefined || now >= this.#shared.until) {
      const { redis, name, reports: counted } = this.#settings;
      // This gateway knows newer numbers of its own than Redis has.
      const totals = orUnavailable(redis, () => readReports(redis, name)).then(({ reports, past, own }) =>
        totalsOf([...reports, ...past, ...own.map(negated), ...counted.parts()]),
      );
      const shared = { totals, until: now + SHARED_MS };
      this.#shared = shared;
      // The next caller tries again.
      totals.catch(() => {
        if (this.#shared === shared) this.#shared = undefined;
      });
    }
    return this.#shared.totals;
  }
}

function negated(part: ReportPart): ReportPart {
  return { ...part, sums: part.sums.map((sum) => -sum) };
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
