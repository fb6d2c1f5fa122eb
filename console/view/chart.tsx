/**
 * Lines over time. The canvas takes its colours from the theme, and the same values stand in a
 * table behind a button, for readers who do not see the lines.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { isDark } from "./theme.js";

export interface Line {
  readonly name: string;
  /** One for each time; null if nothing is known of the time. */
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  /** In ms since 1970, ascending. */
  readonly at: readonly number[];
  readonly lines: readonly Line[];
  readonly text: (value: number) => string;
}

const HEIGHT_PX = 150;
/** Rows of the table, the newest. */
const MOST_ROWS = 60;
/** The variables of the theme that colour the lines, in turn. */
const COLOURS = ["--accent", "--focus", "--good", "--warn"];

export function Chart({ title, at, lines, text }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | undefined>(undefined);
  const names = lines.map(({ name }) => name).join("\n");
  useLayoutEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    // A canvas knows neither variables nor both themes, so the browser computes the colour.
    const colour = (variable: string) => () => {
      box.style.color = `var(${variable})`;
      return getComputedStyle(box).color;
    };
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 } };
    const plot = new uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT_PX,
        scales: { y: { range: (_, __, most) => [0, Math.max(most, Number.MIN_VALUE) * 1.05] } },
        series: [
          {},
          ...names
            .split("\n")
            .map((label, i) => ({ label, stroke: colour(COLOURS[i % COLOURS.length] ?? ""), width: 2 })),
        ],
        axes: [
          { ...axis, size: 32, space: 80, values: (_, ticks) => ticks.map(clockText) },
          { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => text(tick)) },
        ],
        legend: { show: false },
        cursor: { show: false },
      },
      [[], ...names.split("\n").map(() => [])],
      box,
    );
    drawn.current = plot;
    const sized = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT_PX }));
    sized.observe(box);
    return () => {
      sized.disconnect();
      plot.destroy();
      drawn.current = undefined;
    };
    // Another theme has other colours.
  }, [names, text, isDark.value]);
  useLayoutEffect(() => {
    drawn.current?.setData([at.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])]);
  });
  return (
    <figure class="chart sheet">
      <figcaption>
        {title}
        {lines.length > 1 &&
          lines.map(({ name }, i) => (
            <span class={`legend legend-${i % COLOURS.length}`} key={name}>
              {name}
            </span>
          ))}
      </figcaption>
      <div ref={place} aria-hidden="true" />
      <details>
        <summary>Table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {lines.map(({ name }) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {at
              .map((ms, i) => ({ ms, values: lines.map(({ values }) => values[i] ?? null) }))
              .slice(-MOST_ROWS)
              .toReversed()
              .map(({ ms, values }) => (
                <tr key={ms}>
                  <td>{new Date(ms).toLocaleTimeString()}</td>
                  {values.map((value, i) => (
                    <td class="number" key={lines[i]?.name}>
                      {value === null ? "" : text(value)}
                    </td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

/** @param at in s since 1970 */
function clockText(at: number): string {
  return new Date(at * 1_000).toTimeString().slice(0, "00:00:00".length);
}
