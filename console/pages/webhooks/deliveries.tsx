/** Deliveries: the messages that Baton has sent to webhooks, and has still to send. */
import type { Delivery } from "../../../gateway/answers.js";
import { Id, Link, State } from "../../listing/cells.js";
import type { Filter } from "../../listing/filters.js";
import { ListPage } from "../../listing/list-page.js";
import { countText } from "../../view/figures.js";
import type { Column } from "../../view/grid.js";
import { hrefOf } from "../../view/route.js";
import { Time } from "../../view/times.js";
import { deliveryActions, deliveryStates } from "./delivery-actions.js";
import { eventNames } from "./webhook-actions.js";

const filters: readonly Filter<Delivery>[] = [
  { name: "state", label: "State", options: deliveryStates },
  { name: "event", label: "Event", options: eventNames, fits: ({ event }, value) => event === value },
  { name: "job", label: "Job, whole id" },
  { name: "webhook", label: "Webhook, whole id" },
];

const columns: readonly Column<Delivery>[] = [
  { title: "Delivery", width: "minmax(100px, 1fr)", cell: ({ id }) => <Id id={id} /> },
  { title: "State", width: "84px", cell: ({ state }) => <State of={state} /> },
  { title: "Event", width: "minmax(110px, 1fr)", cell: ({ event }) => event },
  { title: "Attempts", width: "64px", isNumber: true, cell: ({ attempts }) => countText(attempts.length) },
  { title: "Last attempt", width: "minmax(90px, 1fr)", cell: ({ attempts }) => attemptText(attempts.at(-1)) },
  { title: "Next attempt", width: "92px", cell: ({ next_attempt_at: at }) => <Time at={at} /> },
  { title: "Job", width: "minmax(80px, 1fr)", cell: ({ job }) => <Link page="jobs" id={job} /> },
  { title: "Webhook", width: "minmax(80px, 1fr)", cell: ({ webhook }) => <Link page="webhooks" id={webhook} /> },
];

/** How the receiver took the message. */
export function attemptText(attempt: Delivery["attempts"][number] | undefined): string {
  if (attempt === undefined) return "none yet";
  const { status, error } = attempt;
  return [status === null ? undefined : String(status), error].filter(Boolean).join(", ");
}

/** The gateway finds a delivery in a list alone, and a list of a job or a webhook is short. */
function deliveryHref({ id, job, webhook }: Delivery): string {
  return hrefOf("deliveries", [id], job === null ? { webhook: webhook ?? undefined } : { job });
}

export function DeliveriesPage() {
  return (
    <ListPage<Delivery>
      name="Deliveries"
      page="deliveries"
      path="/v2/deliveries"
      noun={["delivery", "deliveries"]}
      filters={filters}
      columns={columns}
      idOf={({ id }) => id}
      hrefOf={deliveryHref}
      actions={deliveryActions}
      actionsWidth="76px"
    />
  );
}
