/** Webhooks: where Baton sends the events of a tenant. */
import { useState } from "preact/hooks";
import type { Webhook } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import { refreshAll } from "../../client/poll.js";
import { Id, State } from "../../listing/cells.js";
import type { Filter } from "../../listing/filters.js";
import { ListPage } from "../../listing/list-page.js";
import { Secret } from "../../listing/secret.js";
import type { Column } from "../../view/grid.js";
import { Time } from "../../view/times.js";
import { eventNames, stateOf, webhookActions } from "./webhook-actions.js";
import { WebhookForm, type WebhookTerms } from "./webhook-form.js";

/** The gateway does not filter webhooks, so the page looks through all of its pages. */
const filters: readonly Filter<Webhook>[] = [
  {
    name: "state",
    label: "State",
    options: ["enabled", "paused", "gone"],
    fits: (one, value) => stateOf(one) === value,
  },
  {
    name: "event",
    label: "Event",
    options: eventNames,
    fits: ({ events }, value) => events.some((one) => one === value),
  },
  {
    name: "q",
    label: "Search all webhooks by URL or id",
    fits: ({ id, url }, value) => `${id} ${url}`.toLowerCase().includes(value.toLowerCase()),
  },
];

const columns: readonly Column<Webhook>[] = [
  { title: "Webhook", width: "minmax(110px, 1fr)", cell: ({ id }) => <Id id={id} /> },
  { title: "State", width: "80px", cell: (one) => <State of={stateOf(one)} /> },
  { title: "URL", width: "minmax(140px, 2fr)", cell: ({ url }) => <span title={url}>{url}</span> },
  {
    title: "Events",
    width: "minmax(110px, 1.4fr)",
    cell: ({ events }) => <span title={events.join(", ")}>{events.join(", ")}</span>,
  },
  { title: "Made", width: "92px", cell: ({ created_at: at }) => <Time at={at} /> },
];

export function WebhooksPage() {
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<Webhook | undefined>(undefined);
  const make = async (terms: WebhookTerms) => {
    const webhook = await change<Webhook>("/v2/webhooks", { method: "POST", body: terms });
    setMade(webhook);
    setMaking(false);
    refreshAll();
  };
  return (
    <ListPage<Webhook>
      name="Webhooks"
      page="webhooks"
      path="/v2/webhooks"
      noun={["webhook", "webhooks"]}
      filters={filters}
      columns={columns}
      idOf={({ id }) => id}
      actions={webhookActions}
      actionsWidth="236px"
      own={
        <button type="button" aria-expanded={isMaking} onClick={() => setMaking(!isMaking)}>
          Submit
        </button>
      }
    >
      {isMaking && (
        <WebhookForm verb="Submit webhook" given={{ url: "", events: ["job.completed", "job.failed"] }} send={make} />
      )}
      {made?.secret !== undefined && <Secret id={made.id} secret={made.secret} onClose={() => setMade(undefined)} />}
    </ListPage>
  );
}
