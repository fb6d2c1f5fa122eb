/** The fleet: what is amiss, its processes and models, and how it changes. */
import type { Fleet, OwnFleet } from "../../gateway/answers.js";
import { bytesText, countText, Figures } from "../view/figures.js";
import { Grid, type Column } from "../view/grid.js";
import { Page } from "../view/page.js";
import { Time } from "../view/times.js";
import { noticesOf } from "./amiss.js";
import { events, isRefused, isWhole, useFleet } from "./fleet-state.js";
import { ModelGrid } from "./model-grid.js";
import { OwnModels } from "./own-models.js";

type ProcessLoad = NonNullable<NonNullable<Fleet["gateways"]>[number]["load"]>;

type WorkerLoad = NonNullable<Fleet["workers"][number]["load"]>;

interface Process {
  readonly role: "gateway" | "worker" | "jobs";
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly device: string;
  readonly serves: string;
  readonly version: string;
  readonly load: string;
}

const text = (title: string, width: string, pick: (row: Process) => string): Column<Process> => ({
  title,
  width,
  cell: (row) => (pick(row) ? <span title={pick(row)}>{pick(row)}</span> : <span class="none">–</span>),
});

const columns: readonly Column<Process>[] = [
  { title: "Process", width: "minmax(150px, 1.2fr)", cell: ({ name }) => <span class="mono">{name}</span> },
  { title: "Role", width: "80px", cell: ({ role }) => <span class={`tag ${role}`}>{role}</span> },
  { title: "Host", width: "minmax(90px, 1fr)", cell: ({ host, pid }) => `${host}, pid ${pid}` },
  { title: "Started", width: "150px", cell: ({ startedAt }) => <Time at={startedAt} /> },
  text("Version", "52px", ({ version }) => version),
  text("Device, load", "minmax(236px, 1.6fr)", ({ device, load }) => [device, load].filter(Boolean).join(", ")),
  text("Serves", "minmax(90px, 1.2fr)", ({ serves }) => serves),
];

export function FleetPage() {
  const polled = useFleet();
  const fleet = polled.answer.value;
  return (
    <Page name="Fleet" polled={polled}>
      {fleet !== undefined && (isWhole(fleet) ? <Whole fleet={fleet} /> : <Own fleet={fleet} />)}
    </Page>
  );
}

function Whole({ fleet }: { readonly fleet: Fleet }) {
  const { workers, models, gateways = [], jobs = [], queue } = fleet;
  const notices = noticesOf(fleet);
  const sum = (pick: (model: Fleet["models"][number]) => number) => models.reduce((total, one) => total + pick(one), 0);
  return (
    <>
      <div class="notices" role="status" aria-label="What is amiss">
        {notices.length === 0 && <p class="notice good">Nothing is amiss.</p>}
        {notices.map(({ kind, text }) => (
          <p class={`notice ${kind}`} key={text}>
            {text}
          </p>
        ))}
      </div>
      <Figures
        figures={[
          { name: "Workers", value: countText(workers.length) },
          { name: "Gateways", value: countText(gateways.length) },
          { name: "Jobs processes", value: countText(jobs.length) },
          { name: "Queued", value: countText(sum((model) => model.queued)) },
          { name: "Running", value: countText(sum((model) => model.running)) },
          { name: "Live sequences", value: countText(sum((model) => model.live_sequences ?? 0)) },
          { name: "In the queue", value: bytesText(queue.bytes) },
        ]}
      />
      <section class="section">
        <h2>Processes</h2>
        <Grid
          name="Fleet"
          columns={columns}
          rows={processesOf(fleet)}
          idOf={({ role, name }) => `${role}/${name}`}
          empty="No process is alive."
        />
      </section>
      <section class="section">
        <h2>Models</h2>
        <ModelGrid fleet={fleet} />
      </section>
      <Events />
    </>
  );
}

function Own({ fleet }: { readonly fleet: OwnFleet }) {
  const [own] = fleet.queue.tenants;
  return (
    <>
      <p class="soft">This key shows its own models and its own load. A key with the scope operator shows the fleet.</p>
      {own !== undefined && (
        <Figures
          figures={[
            { name: "Tenant", value: own.name },
            { name: "In the queue", value: countText(own.requests) },
            { name: "Bytes", value: bytesText(own.bytes) },
          ]}
        />
      )}
      <OwnModels fleet={fleet} />
    </>
  );
}

/** The events that have come since the console was opened. */
function Events() {
  return (
    <section class="section">
      <h2>Events</h2>
      <ul class="sheet events" role="log" aria-label="Events">
        {isRefused.value && <li class="soft">The gateway sends no events now.</li>}
        {events.value.length === 0 && !isRefused.value && <li class="soft">None since the console was opened.</li>}
        {events.value.map(({ id, at, kind, name, text }) => (
          <li key={id}>
            <Time at={at} />
            <span class={`tag ${kind}`}>{name}</span>
            <span>{text}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function processesOf({ workers, gateways = [], jobs = [] }: Fleet): Process[] {
  const others = [
    ...gateways.map((one) => ({ role: "gateway" as const, one })),
    ...jobs.map((one) => ({ role: "jobs" as const, one })),
  ];
  return [
    ...workers.map(({ name, host, pid, started_at: startedAt, device, models, version = "", load }): Process => ({
      role: "worker",
      name,
      host,
      pid,
      startedAt,
      device: device === undefined ? "" : deviceText(device),
      serves: models.map((model) => `${model.name} ${model.version}`).join(", "),
      version,
      load: load ? `${loadText(load)}, ${workText(load)}` : "",
    })),
    ...others.map(({ role, one: { name, host, pid, started_at: startedAt, version = "", load } }): Process => {
      return { role, name, host, pid, startedAt, device: "", serves: "", version, load: load ? loadText(load) : "" };
    }),
  ];
}

function deviceText({ provider, gpu, name, memory }: NonNullable<Fleet["workers"][number]["device"]>): string {
  const place = gpu === undefined ? provider : `${provider} ${gpu}`;
  const used = memory && `${bytesText(memory.used_bytes)} of ${bytesText(memory.total_bytes)}`;
  return [place, name, used].filter(Boolean).join(", ");
}

/** A process of several threads may use more than 100 % of a CPU. */
function loadText({ cpu_ratio: cpu, event_loop_ms: loop, memory_bytes: memory }: ProcessLoad): string {
  return `CPU ${Math.round(cpu * 100)} %, loop ${Math.round(loop)} ms, ${bytesText(memory)}`;
}

function workText({ steps_per_second: steps, tokens_per_second: tokens, busy_ratio: busy, held }: WorkerLoad): string {
  const rates = [`${steps} steps/s`, ...(tokens > 0 ? [`${tokens} tokens/s`] : [])];
  return [`busy ${Math.round(busy * 100)} %`, ...rates, `${held} held`].join(", ");
}
