/** How a model stood in the last minutes, as the observing gateway has written it down. */
import type { History } from "../../gateway/answers.js";
import { usePolled } from "../client/poll.js";
import { Chart } from "../view/chart.js";
import { countText } from "../view/figures.js";

type Measure = keyof History["series"];

const charts: readonly {
  readonly title: string;
  readonly measures: Readonly<Record<string, Measure>>;
  readonly text: (value: number) => string;
}[] = [
  { title: "Steps a second", measures: { steps: "steps" }, text: countText },
  { title: "Time of a request", measures: { "50 %": "p50_ms", "99 %": "p99_ms" }, text: msText },
  { title: "Queue", measures: { requests: "queued" }, text: countText },
  { title: "Oldest request", measures: { age: "oldest_ms" }, text: msText },
  { title: "Rows of a batch", measures: { rows: "batch_rows" }, text: rowsText },
  { title: "Use of workers", measures: { share: "busy_ratio" }, text: shareText },
];

/** A key that is no operator's sees no history. */
export function ModelHistory({ model }: { readonly model: string }) {
  const polled = usePolled<History>(`/v2/fleet/history?minutes=15&models=${encodeURIComponent(model)}`);
  const history = polled.answer.value;
  if (history === undefined || history.at.length < 2) return null;
  return (
    <section class="section">
      <h2>The last minutes</h2>
      <div class="charts">
        {charts.map(({ title, measures, text }) => (
          <Chart
            key={title}
            title={title}
            at={history.at}
            lines={Object.entries(measures).map(([name, measure]) => ({
              name,
              values: history.series[measure]?.[model] ?? [],
            }))}
            text={text}
          />
        ))}
      </div>
    </section>
  );
}

function msText(ms: number): string {
  return ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Number(ms.toPrecision(3))} ms`;
}

function rowsText(rows: number): string {
  return String(Number(rows.toPrecision(3)));
}

function shareText(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
