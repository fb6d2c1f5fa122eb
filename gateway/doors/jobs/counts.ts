/** The figures of the work that no client waits for. */
import { cells } from "#shared/metrics/cells.js";
import type { Answered } from "./verdict.js";

const results = ["2xx", "3xx", "4xx", "5xx", "timeout", "refused_address", "error"] as const;
type AttemptResult = (typeof results)[number];
type DeliveryEnd = "delivered" | "failed";
export type TickResult = "made" | "skipped" | "refused";

const attempts = Object.fromEntries(
  results.map((result) => [result, cells.counter("baton_webhook_attempts_total", { result })]),
) as Readonly<Record<AttemptResult, number>>;
const attemptSeconds = cells.histogram("baton_webhook_attempt_duration_seconds");
const deliveryCell = (state: DeliveryEnd) => cells.counter("baton_webhook_deliveries_total", { state });
const deliveries = { delivered: deliveryCell("delivered"), failed: deliveryCell("failed") };
const tickCell = (result: TickResult) => cells.counter("baton_schedule_ticks_total", { result });
const ticks = { made: tickCell("made"), skipped: tickCell("skipped"), refused: tickCell("refused") };
const lateSeconds = cells.histogram("baton_job_late_seconds");

export function countAttempt(answered: Answered): void {
  cells.add(attempts[resultOf(answered)]);
  cells.observe(attemptSeconds, answered.ms / 1_000);
}

/** Counts a delivery that has ended. */
export function countDelivery(state: DeliveryEnd): void {
  cells.add(deliveries[state]);
}

/** Counts a time of a schedule, in the process that has noted the time's end. */
export function countTick(result: TickResult): void {
  cells.add(ticks[result]);
}

/** Counts a job that was due, and is in the queue now. */
export function countLate(lateMs: number): void {
  cells.observe(lateSeconds, lateMs / 1_000);
}

function resultOf({ status, error }: Answered): AttemptResult {
  const kind = status === null ? undefined : results.find((result) => result === `${Math.floor(status / 100)}xx`);
  if (kind !== undefined) return kind;
  if (error === "timeout" || error === "connect_timeout") return "timeout";
  return error === "url_not_allowed" ? "refused_address" : "error";
}
