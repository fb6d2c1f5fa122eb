/** The models of a fleet, with the load of each. */
import type { Fleet } from "../../gateway/answers.js";
import { countText } from "../view/figures.js";
import { Grid, type Column } from "../view/grid.js";
import { lengthText } from "../view/lengths.js";
import { hrefOf } from "../view/route.js";

interface Row {
  readonly name: string;
  readonly version: string;
  readonly state: "served" | "waits" | "failed";
  readonly kind: string;
  readonly workers: number;
  readonly queued: number;
  readonly running: number;
  readonly sequences: number | undefined;
  readonly setAside: number;
  readonly stepsPerSecond: number | undefined;
  /** Of the oldest request that waits, such as `3 s`; undefined if none waits. */
  readonly oldest: string | undefined;
  readonly note: string;
}

const noLoad = {
  kind: "",
  queued: 0,
  running: 0,
  sequences: undefined,
  setAside: 0,
  stepsPerSecond: undefined,
  oldest: undefined,
};
const states = { served: "good", waits: "warn", failed: "bad" } as const;
const number = (title: string, width: number, pick: (row: Row) => number | string | undefined): Column<Row> => ({
  title,
  width: `${width}px`,
  isNumber: true,
  cell(row) {
    const count = pick(row);
    return count === undefined ? <span class="none">–</span> : typeof count === "string" ? count : countText(count);
  },
});

const columns: readonly Column<Row>[] = [
  { title: "Model", width: "minmax(110px, 1.4fr)", cell: ({ name }) => name },
  { title: "Version", width: "54px", cell: ({ version }) => version },
  { title: "State", width: "68px", cell: ({ state }) => <span class={`tag ${states[state]}`}>{state}</span> },
  { title: "Kind", width: "72px", cell: ({ kind }) => kind || <span class="none">–</span> },
  number("Workers", 58, ({ workers }) => workers),
  number("Queued", 54, ({ queued }) => queued),
  number("Running", 58, ({ running }) => running),
  number("Oldest", 52, ({ oldest }) => oldest),
  number("Steps/s", 54, ({ stepsPerSecond }) => stepsPerSecond),
  number("Sequences", 74, ({ sequences }) => sequences),
  number("Set aside", 64, ({ setAside }) => setAside),
  { title: "Note", width: "minmax(56px, 1.6fr)", cell: ({ note }) => <span title={note}>{note}</span> },
];

export interface ModelGridProps {
  readonly fleet: Fleet;
  /** Shows only models whose name has this text. */
  readonly search?: string;
}

export function ModelGrid({ fleet, search = "" }: ModelGridProps) {
  const rows = rowsOf(fleet).filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()));
  return (
    <Grid
      name="Models"
      columns={columns}
      rows={rows}
      idOf={({ name, version, state }) => `${name}/${version}/${state}`}
      hrefOf={({ name }) => hrefOf("models", [name])}
      empty={search === "" ? "No worker serves a model." : "No model has such a name."}
    />
  );
}

function rowsOf({ models, workers }: Fleet): Row[] {
  const served = models.map((model): Row => {
    const { name, version, kind, workers, queued, running, warnings = [] } = model;
    return {
      name,
      version,
      state: workers === 0 ? "waits" : "served",
      kind,
      workers,
      queued,
      running,
      sequences: model.live_sequences,
      setAside: model.set_aside,
      stepsPerSecond: model.steps_per_second,
      oldest: model.oldest_ms ? lengthText(model.oldest_ms) : undefined,
      note: warnings.join("; "),
    };
  });
  const failed = new Map<string, Row>();
  for (const { name, version = "", reason } of workers.flatMap((worker) => worker.failed)) {
    const before = failed.get(`${name}/${version}`);
    const workersOf = (before?.workers ?? 0) + 1;
    const row: Row = { ...noLoad, name, version, state: "failed", workers: workersOf, note: reason };
    failed.set(`${name}/${version}`, row);
  }
  return [...served, ...failed.values()].toSorted(
    (a, b) => a.name.localeCompare(b.name) || Number(a.version) - Number(b.version),
  );
}
