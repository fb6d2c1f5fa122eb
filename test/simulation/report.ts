/** A run that has failed, as text for people. */
import type { Report } from "./run.js";

/** How many violations, and how many lines of the trace, a report shows. */
const SHOWN = { violations: 20, lines: 60 };

export function rendered(report: Report): string {
  const { seed, violations, plan, stuck, trace, simulatedMs, requests } = report;
  const { gateways, workers, buckets, load, weather, strikes } = plan;
  const shown = violations.slice(0, SHOWN.violations).map(({ invariant, what, sequence, request }) => {
    return `  ${[invariant, sequence, request].filter((one) => one !== undefined).join(" ")}: ${what}`;
  });
  const words = [...new Set(violations.flatMap(({ sequence, request }) => [sequence ?? [], request ?? []].flat()))];
  return [
    `SEED ${seed}: ${violations.length} violations in ${Math.round(simulatedMs)} ms, ${requests} requests`,
    `  ${gateways} gateways, ${workers} workers, ${buckets} buckets; load ${JSON.stringify(load)}`,
    `  weather ${JSON.stringify(weather)}`,
    ...strikes.map(({ at, kind, ms }) => `  ${at} ms: ${kind}, ${ms} ms`),
    ...shown,
    ...(stuck === undefined ? [] : [`  STUCK; still planned: ${stuck}`]),
    "  the calls around it:",
    ...trace.last(SHOWN.lines, words.length === 0 ? [] : words).map((line) => `    ${line}`),
    "  the end:",
    ...trace.last(SHOWN.lines / 3).map((line) => `    ${line}`),
  ].join("\n");
}
