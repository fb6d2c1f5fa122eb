/** What tenants have used, by day, key and model. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { NO_KEY } from "#shared/contract/usage.js";
import { readUsage, readUsers, type UsageSums } from "#shared/queue/owners/usage.js";
import { usage } from "#shared/records/usage.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { loadKey } from "#shared/queue/keys.js";
import { timeAt } from "#shared/redis/clock.js";
import { askRedis } from "../admission/ask-redis.js";
import { needTenant, toRead, type Administration } from "./administration.js";
import type { Caller } from "./caller.js";

export interface UsageServiceSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** Days that Redis keeps. */
  readonly days: number;
  /** Undefined if the deployment asks for no keys. */
  readonly administration: Administration | undefined;
}

export const usageGroups = ["day", "model", "key"] as const;
export type UsageGroup = (typeof usageGroups)[number];

export interface UsageQuery {
  /** UTC days, such as 2026-11-28, both included; absent: the last 30 days. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** What a row is for, beside the tenant. */
  readonly group: readonly UsageGroup[];
  /** Absent: the caller's own, or for an operator all. */
  readonly tenant: string | undefined;
  /** The page begins behind this tenant. */
  readonly after: string | undefined;
}

/** Sums as clients see them. */
export interface UsageView {
  readonly requests: number;
  readonly steps: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly compute_ms: number;
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly refused: number;
}

/** A member is absent if rows are not for it. */
export interface UsageRow extends UsageView {
  readonly object: "usage";
  readonly tenant: string;
  readonly day?: string | undefined;
  readonly model?: string | undefined;
  /** Null for work that no client sends, such as the times of schedules. */
  readonly key?: string | null | undefined;
}

export interface UsagePage {
  readonly data: readonly UsageRow[];
  /** Of all rows of the page. */
  readonly totals: UsageView;
  readonly lastTenant: string | undefined;
  readonly hasMore: boolean;
}

const DAY_MS = 86_400_000;
/** How many days without `from`. */
const USUAL_DAYS = 30;
/** A page ends with the tenant that fills so many rows. */
const PAGE_ROWS = 1_000;
/** A page ends after so many reads, too. */
const PAGE_READS = 3_000;
/** Most reads that wait for another. */
const MOST_WAITING = 16;
/** Most rows of a tenant: a longer answer would hold up the other clients of this process. */
const MOST_ROWS = 10_000;

type Row = { -readonly [N in keyof Omit<UsageRow, keyof UsageView>]: UsageRow[N] };
type Sums = { -readonly [N in keyof UsageSums]: UsageSums[N] };

export class UsageService {
  readonly #settings: UsageServiceSettings;
  /** The reads follow each other, because each may ask Redis for much. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(settings: UsageServiceSettings) {
    this.#settings = settings;
  }

  /**
   * @throws InferenceError `insufficient_scope`, `invalid_argument`, `unsupported` or `unavailable`
   */
  async read(caller: Caller, query: UsageQuery): Promise<UsagePage> {
    toRead(this.#settings.administration);
    const { tenant } = query;
    if (tenant !== undefined) needTenant(caller, tenant);
    const asked = tenant === undefined && caller.may("operator") ? undefined : (tenant ?? caller.tenant);
    if (this.#waiting >= MOST_WAITING) throw fixedError("unavailable", "tooManyReads");
    this.#waiting++;
    const reading = this.#last.then(() => this.#page(query, asked)).finally(() => this.#waiting--);
    this.#last = reading.catch(() => undefined);
    return reading;
  }

  /** @param tenant undefined: all */
  async #page({ from, to, group, after = "" }: UsageQuery, tenant: string | undefined): Promise<UsagePage> {
    const days = await this.#daysOf(from, to);
    const tenants = tenant === undefined ? await this.#usersOf(days) : [tenant];
    const waiting = tenants.filter((one) => one > after).sort();
    const data: UsageRow[] = [];
    const totals = noSums();
    let lastTenant: string | undefined;
    for (let reads = 0; data.length < PAGE_ROWS && reads < PAGE_READS && waiting.length > 0; reads += days.length) {
      lastTenant = waiting.shift() ?? "";
      for (const { row, sums } of await this.#rowsOf(lastTenant, days, group)) {
        add(totals, sums);
        data.push({ ...row, ...viewOf(sums) });
      }
    }
    return { data, totals: viewOf(totals), lastTenant, hasMore: waiting.length > 0 };
  }

  /** By Redis's clock, as the scripts that count. */
  async #daysOf(from: string | undefined, to: string | undefined): Promise<string[]> {
    const { redis, days: most } = this.#settings;
    const last = to === undefined ? await askRedis(() => timeAt(redis, loadKey(undefined))) : dayOf("to", to);
    const first = from === undefined ? last - (Math.min(USUAL_DAYS, most) - 1) * DAY_MS : dayOf("from", from);
    const count = Math.floor(last / DAY_MS) - Math.floor(first / DAY_MS) + 1;
    if (count < 1) throw new InferenceError("invalid_argument", "from must not be after to");
    if (count > most) throw new InferenceError("invalid_argument", `from and to may include ${most} days`);
    return Array.from({ length: count }, (_, i) => textOf(first + i * DAY_MS));
  }

  async #usersOf(days: readonly string[]): Promise<string[]> {
    const { redis, buckets } = this.#settings;
    const months = [...new Set(days.map((day) => day.slice(0, 7)))];
    const found = await askRedis(() => Promise.all(months.map((month) => readUsers(redis, buckets, month))));
    return [...new Set(found.flat())];
  }

  async #rowsOf(
    tenant: string,
    days: readonly string[],
    group: readonly UsageGroup[],
  ): Promise<Iterable<{ readonly row: Row; readonly sums: Sums }>> {
    const { redis, buckets } = this.#settings;
    const rows = new Map<string, { readonly row: Row; readonly sums: Sums }>();
    for (const day of days) {
      for (const { key, model, sums } of await askRedis(() => readUsage(redis, buckets, tenant, day))) {
        const row: Row = { object: "usage", tenant };
        if (group.includes("day")) row.day = day;
        if (group.includes("key")) row.key = key === NO_KEY ? null : key;
        if (group.includes("model")) row.model = model;
        const name = JSON.stringify(row);
        const known = rows.get(name) ?? { row, sums: noSums() };
        add(known.sums, sums);
        rows.set(name, known);
      }
      if (rows.size <= MOST_ROWS) continue;
      const message = `there are more than ${MOST_ROWS} rows: ask for fewer days, or group by less`;
      throw new InferenceError("invalid_argument", message);
    }
    return rows.values();
  }
}

function noSums(): Sums {
  return Object.fromEntries(Object.keys(usage.fields).map((name) => [name, 0])) as Sums;
}

function add(to: Sums, sums: UsageSums): void {
  for (const name of Object.keys(to) as (keyof Sums)[]) to[name] += sums[name];
}

function viewOf({ requests, steps, refused, ...sums }: Sums): UsageView {
  const { tokensIn: tokens_in, tokensOut: tokens_out, bytesIn: bytes_in, bytesOut: bytes_out, computeUs } = sums;
  return { requests, steps, tokens_in, tokens_out, compute_ms: computeUs / 1_000, bytes_in, bytes_out, refused };
}

/** @returns ms since 1970 @throws InferenceError */
function dayOf(name: string, text: string): number {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (!Number.isNaN(ms) && textOf(ms) === text) return ms;
  throw new InferenceError("invalid_argument", `${name} must be a day such as 2026-11-28, not '${text.slice(0, 64)}'`);
}

function textOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
