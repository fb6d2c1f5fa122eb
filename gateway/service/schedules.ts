/** The operations on the schedules of a tenant: jobs that Baton submits again and again. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { ScheduleName } from "#shared/queue/schedules/schedules.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import type { ModelName } from "../fleet/models.js";
import type { Preparing } from "../jobs/prepare.js";
import type { Submissions } from "../jobs/submissions.js";
import { readSchedule, type ReadSchedule } from "../schedules/read-schedule.js";
import { newSchedule, paused, resumed, type Schedule } from "../schedules/schedule.js";
import type { Schedules, StoredSchedule } from "../schedules/schedules.js";
import type { RequestTrace } from "../trace/request-trace.js";
import type { Caller } from "./caller.js";
import { unknownPlace, type Page, type PageTerms } from "./page.js";

export interface ScheduleServiceSettings {
  readonly schedules: Schedules;
  /** Checks the job of a new schedule. */
  readonly submissions: Submissions;
  /** The deployment's secret, so that a client cannot guess the id of a schedule. */
  readonly secret: () => Buffer;
}

/** The tenant and the model of a new schedule. */
export interface ScheduleTarget {
  readonly job: Preparing;
  /** Redis ms; the times of the new schedule lie behind it. */
  readonly now: number;
}

export interface MakeTerms {
  /** The client's key for the call. */
  readonly key: string | undefined;
  /** Undefined if the submission is not sampled. */
  readonly trace: RequestTrace | undefined;
}

const ID_BYTES = 16;

export class ScheduleService {
  readonly #settings: ScheduleServiceSettings;

  constructor(settings: ScheduleServiceSettings) {
    this.#settings = settings;
  }

  /**
   * Finds the model of a new schedule, so that a door refuses an unknown model before it receives
   * the body.
   * @throws InferenceError `unknown_model`, `model_unavailable` or `unavailable`
   */
  async target({ tenant, mayUse }: Caller, model: ModelName): Promise<ScheduleTarget> {
    const { schedules, submissions } = this.#settings;
    const job = submissions.target({ ...model, tenant, mayUse });
    return { job, now: await askRedis(() => schedules.now()) };
  }

  /**
   * Reads a new schedule, and checks its job as if a client submitted the job now.
   * @param bytes the client's whole body, which the result does not keep
   * @throws InferenceError that names the fault
   */
  async read({ job, now }: ScheduleTarget, bytes: Buffer): Promise<ReadSchedule> {
    const read = readSchedule(bytes, { model: job.model.name, version: job.version }, now);
    const { webhook } = await this.#settings.submissions.read(job, read.job);
    // Each job would draw a new secret, and no view would show the secret to a client.
    if (webhook !== undefined && "url" in webhook.shown) throw hasOwnUrl();
    return read;
  }

  /**
   * Makes a schedule, unless an earlier call has made the schedule under the same key.
   * @returns `isReplayed`: an earlier call under this key has made the schedule
   * @throws InferenceError `schedule_limit`, `idempotency_mismatch`, `unknown_schedule`,
   * `outcome_unknown` or `unavailable`
   */
  async make(
    { budget }: Caller,
    target: ScheduleTarget,
    { asked, job }: ReadSchedule,
    { key, trace }: MakeTerms,
  ): Promise<StoredSchedule & { readonly isReplayed: boolean }> {
    const { schedules } = this.#settings;
    const { tenant } = target.job;
    const schedule = newSchedule(asked, { id: this.#idFor(tenant, key), tenant }, target.now);
    const digest = createHash("sha256").update(JSON.stringify(asked)).update(job).digest("base64url");
    const most = budget?.counts?.schedules;
    const isKnown = await changeInRedis(() => schedules.make(schedule, job, digest, most, trace?.server));
    // A schedule from an earlier call may have changed since.
    const stored = isKnown ? await this.#find(schedule) : { schedule, job };
    // Without a key, only an earlier copy of this call can have made the schedule.
    return { ...stored, isReplayed: isKnown && key !== undefined };
  }

  /**
   * Lists the schedules, the newest first.
   * @throws InferenceError
   */
  async list({ tenant }: Caller, { limit, after }: PageTerms): Promise<Page<StoredSchedule>> {
    const page = await askRedis(() => this.#settings.schedules.list(tenant, limit, after));
    if (page === undefined) throw unknownPlace();
    return page;
  }

  /** @throws InferenceError `unknown_schedule` or `unavailable` */
  view({ tenant }: Caller, id: string): Promise<StoredSchedule> {
    return this.#find({ tenant, id });
  }

  /**
   * Removes a schedule. The jobs that it has made stay.
   * @throws InferenceError `unknown_schedule`, `outcome_unknown` or `unavailable`
   */
  async remove({ tenant }: Caller, id: string): Promise<void> {
    const name = { tenant, id };
    await this.#find(name);
    await changeInRedis(() => this.#settings.schedules.change(name, () => undefined));
  }

  /**
   * Pauses a schedule, so that it makes no jobs until a client resumes it.
   * @throws InferenceError `unknown_schedule`, `schedule_ended`, `outcome_unknown` or `unavailable`
   */
  pause(caller: Caller, id: string): Promise<StoredSchedule> {
    return this.#change(caller, id, (schedule) => paused(unlessEnded(schedule)));
  }

  /**
   * Resumes a schedule, which does not make up for the times in the pause.
   * @throws InferenceError `unknown_schedule`, `schedule_ended`, `unknown_model`, `outcome_unknown`
   * or `unavailable`
   */
  resume(caller: Caller, id: string): Promise<StoredSchedule> {
    return this.#change(caller, id, (schedule, now) => {
      const { model, version } = unlessEnded(schedule);
      caller.needModel({ model, version: version ?? undefined });
      return resumed(schedule, now);
    });
  }

  async #find({ tenant, id }: ScheduleName): Promise<StoredSchedule> {
    return known(await askRedis(() => this.#settings.schedules.find({ tenant, id })));
  }

  async #change(
    { tenant }: Caller,
    id: string,
    how: (schedule: Schedule, now: number) => Schedule,
  ): Promise<StoredSchedule> {
    const { schedules } = this.#settings;
    const now = await askRedis(() => schedules.now());
    return known(await changeInRedis(() => schedules.change({ tenant, id }, (schedule) => how(schedule, now))));
  }

  /** A repeated call under a key gives the same id. */
  #idFor(tenant: string, key: string | undefined): string {
    const bytes =
      key === undefined
        ? randomBytes(ID_BYTES)
        : createHmac("sha256", this.#settings.secret())
            .update(JSON.stringify(["schedule", tenant, key]))
            .digest();
    return `sched_${bytes.subarray(0, ID_BYTES).toString("base64url")}`;
  }
}

/** @throws InferenceError `unknown_schedule` */
function known(stored: StoredSchedule | undefined): StoredSchedule {
  if (stored === undefined) throw fixedError("unknown_schedule", "usual");
  return stored;
}

/** @throws InferenceError `schedule_ended` */
function unlessEnded(schedule: Schedule): Schedule {
  if (schedule.state === "ended") throw fixedError("schedule_ended", "usual");
  return schedule;
}

function hasOwnUrl(): InferenceError {
  return new InferenceError(
    "invalid_argument",
    "job.webhook must name a webhook by its id: the secret of a url is shown to nobody here",
  );
}
