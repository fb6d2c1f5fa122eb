/** Settings: whether the gateway and its brokers work, and how the gateway is set up. */
import type { Fleet, Settings } from "../../../gateway/answers.js";
import { usePolledBy } from "../../client/poll.js";
import { Refusal } from "../../client/refusal.js";
import { ErrorNotice } from "../../view/failures.js";
import { countText, Figures } from "../../view/figures.js";
import { Grid, type Column } from "../../view/grid.js";
import { Page } from "../../view/page.js";
import { filter, route } from "../../view/route.js";
import { Search } from "../../view/search.js";
import { isWhole, useFleet } from "../fleet-state.js";
import { useOnce } from "../once.js";
import { readReady, readSettings } from "./health.js";
import { shownSettings, type Setting } from "./shown.js";

/** The answer of `/v2`. */
interface Server {
  readonly name: string;
  readonly version: string;
}

const columns: readonly Column<Setting>[] = [
  { title: "Setting", width: "minmax(200px, 1.2fr)", cell: ({ name }) => <span class="mono">{name}</span> },
  { title: "Value", width: "minmax(120px, 1fr)", cell: ({ value }) => <Value of={value} /> },
  { title: "Default", width: "minmax(120px, 1fr)", cell: ({ default: usual }) => <Value of={usual} /> },
  {
    title: "Comes from",
    width: "110px",
    cell: ({ given }) => (given ? "environment" : <span class="none">default</span>),
  },
];

function Value({ of }: { readonly of: string | null }) {
  if (of === null) return <span class="none">none</span>;
  return (
    <span class="mono" title={of}>
      {of}
    </span>
  );
}

export function SettingsPage() {
  const ready = usePolledBy("/v2/health/ready", readReady);
  // A key that may not see the settings does not ask for them again.
  const polled = usePolledBy("/v2/settings", readSettings, (answer) => (answer === null ? Infinity : undefined));
  const fleet = useFleet().answer.value;
  const server = useOnce<Server>("/v2").answer;
  const isReady = ready.answer.value;
  const settings = polled.answer.value;
  const refresh = (): void => {
    ready.refresh();
    polled.refresh();
  };
  return (
    <Page name="Settings" polled={{ answer: ready.answer, at: ready.at, error: ready.error, refresh }}>
      {polled.error.value instanceof Refusal && <ErrorNotice error={polled.error.value} />}
      {isReady !== undefined && settings !== undefined && (
        <>
          <Figures
            figures={[
              { name: "Gateway", value: isReady ? "ready" : "not ready" },
              ...brokersOf(settings?.connections),
              ...(server === undefined ? [] : [{ name: "Version", value: `${server.name} ${server.version}` }]),
            ]}
          />
          {!isReady && (
            <p class="notice warn">
              <span>The gateway cannot admit requests now, or no worker serves a model.</span>
            </p>
          )}
          {settings === null ? (
            <p class="soft">A key with the scope operator shows the settings.</p>
          ) : (
            <List settings={settings.settings} />
          )}
          {fleet !== undefined && isWhole(fleet) && <Versions fleet={fleet} />}
        </>
      )}
    </Page>
  );
}

function brokersOf(connections: Settings["connections"] | undefined) {
  if (connections === undefined) return [];
  return [
    { name: "Redis", value: connections.redis ? "connected" : "away" },
    { name: "NATS", value: connections.nats ? "connected" : "away" },
  ];
}

interface Versioned {
  readonly role: "gateway" | "jobs";
  readonly name: string;
  readonly version: string;
}

const versionColumns: readonly Column<Versioned>[] = [
  { title: "Process", width: "minmax(200px, 1.2fr)", cell: ({ name }) => <span class="mono">{name}</span> },
  { title: "Role", width: "90px", cell: ({ role }) => <span class={`tag ${role}`}>{role}</span> },
  { title: "Version", width: "minmax(120px, 1fr)", cell: ({ version }) => version },
];

/** The versions of all processes that say theirs: a user sees whether an update is complete. */
function Versions({ fleet: { gateways = [], jobs = [] } }: { readonly fleet: Fleet }) {
  const all = [
    ...gateways.map((one) => ({ ...one, role: "gateway" as const })),
    ...jobs.map((one) => ({ ...one, role: "jobs" as const })),
  ];
  return (
    <section class="section">
      <h2>Versions</h2>
      <Grid
        name="Versions"
        columns={versionColumns}
        rows={all.flatMap(({ role, name, version }) => (version === undefined ? [] : [{ role, name, version }]))}
        idOf={({ role, name }) => `${role}/${name}`}
        empty="No process says its version."
      />
    </section>
  );
}

function List({ settings }: { readonly settings: readonly Setting[] }) {
  const { q: search = "", show } = route.value.query;
  const showsAll = show === "all";
  const rows = shownSettings(settings, { showsAll, search });
  return (
    <>
      <div class="bar">
        <Search name="q" label="Search by name or value" />
        <label class="check">
          <input
            type="checkbox"
            checked={showsAll}
            onChange={({ currentTarget }) => filter({ show: currentTarget.checked ? "all" : undefined })}
          />{" "}
          Settings with their default, too
        </label>
        <p class="soft" role="status">
          {countText(rows.length)} of {countText(settings.length)} settings
        </p>
      </div>
      <Grid
        name="Settings"
        columns={columns}
        rows={rows}
        idOf={({ name }) => name}
        empty={search === "" ? "All settings have their defaults." : "No setting fits."}
      />
    </>
  );
}
