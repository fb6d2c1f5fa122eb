/** The frame of the console: banner, navigation and the page that the address names. */
import { useEffect, useLayoutEffect } from "preact/hooks";
import { isAway } from "./client/ask.js";
import { BatchPage } from "./pages/batches/batch.js";
import { BatchesPage } from "./pages/batches/batches.js";
import { FleetPage } from "./pages/fleet.js";
import { DeadPage } from "./pages/jobs/dead.js";
import { JobPage } from "./pages/jobs/job.js";
import { JobsPage } from "./pages/jobs/jobs.js";
import { SchedulePage } from "./pages/jobs/schedule.js";
import { SchedulesPage } from "./pages/jobs/schedules.js";
import { ModelPage } from "./pages/model.js";
import { ModelsPage } from "./pages/models.js";
import { DeliveriesPage } from "./pages/webhooks/deliveries.js";
import { DeliveryPage } from "./pages/webhooks/delivery.js";
import { SettingsPage } from "./pages/settings/settings.js";
import { WebhookPage } from "./pages/webhooks/webhook.js";
import { WebhooksPage } from "./pages/webhooks/webhooks.js";
import { SequencePage } from "./pages/sequence.js";
import { SequencesPage } from "./pages/sequences.js";
import { StreamPage } from "./pages/stream.js";
import { StreamsPage } from "./pages/streams.js";
import { TryPage } from "./pages/try.js";
import { Failures } from "./view/failures.js";
import { Help } from "./view/help.js";
import { ForgetKey, KeyForm } from "./view/key-form.js";
import { isHelpShown, listenForKeys, type KeyedPage } from "./view/keys.js";
import { Page } from "./view/page.js";
import { hrefOf, route, type Route } from "./view/route.js";
import { toggleTheme } from "./view/theme.js";
import { nextTimeForm, timeForm } from "./view/times.js";

const groups: readonly { readonly title: string; readonly pages: readonly KeyedPage[] }[] = [
  {
    title: "Overview",
    pages: [
      { name: "Fleet", page: "fleet", key: "f" },
      { name: "Models", page: "models", key: "m" },
      { name: "Settings", page: "settings", key: "e" },
    ],
  },
  {
    title: "Now",
    pages: [
      { name: "Sequences", page: "sequences", key: "s" },
      { name: "Streams", page: "streams", key: "r" },
      { name: "Try it", page: "try", key: "t" },
    ],
  },
  {
    title: "Later",
    pages: [
      { name: "Jobs", page: "jobs", key: "j" },
      { name: "Schedules", page: "schedules", key: "c" },
      { name: "Batches", page: "batches", key: "b" },
      { name: "Dead letters", page: "dead", key: "d" },
    ],
  },
  {
    title: "Events",
    pages: [
      { name: "Webhooks", page: "webhooks", key: "w" },
      { name: "Deliveries", page: "deliveries", key: "v" },
    ],
  },
];
const pages = groups.flatMap((group) => group.pages);

export function App() {
  useLayoutEffect(() => listenForKeys(pages), []);
  const { page } = route.value;
  const name = pages.find((one) => one.page === page)?.name;
  useEffect(() => {
    document.title = name === undefined ? "Baton" : `${name} · Baton`;
  }, [name]);
  return (
    <div class="frame">
      <Banner />
      <nav class="navigation" aria-label="Pages">
        {groups.map((group) => (
          <div key={group.title} role="group" aria-label={group.title}>
            <p class="group" aria-hidden="true">
              {group.title}
            </p>
            <ul>
              {group.pages.map((one) => (
                <li key={one.page}>
                  <a href={hrefOf(one.page)} aria-current={isAt(one, page) ? "page" : undefined}>
                    {one.name} <kbd aria-hidden="true">g {one.key}</kbd>
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <main>
        {isAway.value && (
          <p class="notice warn" role="status">
            The gateway does not answer. This page asks again until it does, and shows its last answers.
          </p>
        )}
        <KeyForm />
        <Failures />
        <Shown route={route.value} />
      </main>
      <Help pages={pages} />
    </div>
  );
}

function isAt(one: KeyedPage, page: string): boolean {
  return one.page === page || (page === "" && one.page === "fleet");
}

function Banner() {
  return (
    <header class="banner" role="banner">
      <a class="brand" href={hrefOf("fleet")}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect x="0" y="6" width="16" height="4" rx="2" transform="rotate(-35 8 8)" />
        </svg>
        Baton
      </a>
      <ForgetKey />
      <button type="button" class="quiet" onClick={nextTimeForm}>
        Times: {timeForm.value}
      </button>
      <button type="button" class="quiet" onClick={toggleTheme}>
        Theme
      </button>
      <button type="button" class="quiet" onClick={() => (isHelpShown.value = true)}>
        Keys
      </button>
    </header>
  );
}

/** A key for each thing, so that a page of another thing begins anew. */
function Shown({ route: { page, parts } }: { readonly route: Route }) {
  const [first, second] = parts;
  switch (page) {
    case "":
    case "fleet":
      return <FleetPage />;
    case "models":
      return first === undefined ? <ModelsPage /> : <ModelPage key={first} model={first} />;
    case "sequences":
      if (first !== undefined && second !== undefined) {
        return <SequencePage key={`${first}/${second}`} model={first} id={second} />;
      }
      return <SequencesPage key={first ?? ""} model={first} />;
    case "streams":
      return first === undefined ? <StreamsPage /> : <StreamPage key={first} id={first} />;
    case "jobs":
      return first === undefined ? <JobsPage /> : <JobPage key={first} id={first} />;
    case "schedules":
      return first === undefined ? <SchedulesPage /> : <SchedulePage key={first} id={first} />;
    case "batches":
      return first === undefined ? <BatchesPage /> : <BatchPage key={first} id={first} />;
    case "settings":
      return <SettingsPage />;
    case "webhooks":
      return first === undefined ? <WebhooksPage /> : <WebhookPage key={first} id={first} />;
    case "deliveries":
      return first === undefined ? <DeliveriesPage /> : <DeliveryPage key={first} id={first} />;
    case "dead":
      return <DeadPage />;
    case "try":
      return <TryPage key={first ?? ""} model={first} />;
    default:
      return (
        <Page name="No such page">
          <p>
            The console has no page <code>{page}</code>. <a href={hrefOf("fleet")}>Fleet</a>
          </p>
        </Page>
      );
  }
}
