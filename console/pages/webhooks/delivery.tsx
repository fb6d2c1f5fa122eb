/** A delivery: the attempts to send its message. */
import type { Delivery, Page as PageOf } from "../../../gateway/answers.js";
import { read } from "../../client/ask.js";
import { usePolledBy } from "../../client/poll.js";
import { ActionButtons } from "../../listing/actions.js";
import { Link } from "../../listing/cells.js";
import { Facts, timeFacts } from "../../listing/facts.js";
import { findRows, PAGE, type Found } from "../../listing/find-rows.js";
import { countText, Figures } from "../../view/figures.js";
import { Grid, type Column } from "../../view/grid.js";
import { Page } from "../../view/page.js";
import { hrefOf, route } from "../../view/route.js";
import { Time } from "../../view/times.js";
import { attemptText } from "./deliveries.js";
import { deliveryActions } from "./delivery-actions.js";

const REST_MS = 5_000;

export function DeliveryPage({ id }: { readonly id: string }) {
  const { job, webhook } = route.value.query;
  const asked = { limit: String(PAGE), ...(job && { job }), ...(webhook && { webhook }) };
  const polled = usePolledBy<Found<Delivery>>(
    `delivery ${JSON.stringify([id, asked])}`,
    (signal) => {
      const readPage = (after: string | undefined) => {
        const query = new URLSearchParams({ ...asked, ...(after && { after }) });
        return read<PageOf<Delivery>>(`/v2/deliveries?${query.toString()}`, { signal });
      };
      return findRows(readPage, undefined, (one) => one.id === id, 1);
    },
    ({ requests }) => requests * REST_MS,
  );
  const found = polled.answer.value;
  const delivery = found?.rows[0];
  return (
    <Page name={`Delivery ${id}`} polled={polled} above={{ name: "Deliveries", href: hrefOf("deliveries") }}>
      {found !== undefined && delivery === undefined && (
        <p class="notice warn">
          {found.hasMore ? "The newest deliveries do not have this id." : "There is no delivery with this id."}
        </p>
      )}
      {delivery !== undefined && <Standing delivery={delivery} onDone={() => polled.refresh()} />}
    </Page>
  );
}

type Attempt = Delivery["attempts"][number];

const columns: readonly Column<Attempt>[] = [
  { title: "Time", width: "160px", cell: ({ at }) => <Time at={at} /> },
  { title: "Answer", width: "1fr", cell: (attempt) => attemptText(attempt) },
  { title: "Took", width: "90px", isNumber: true, cell: ({ ms }) => `${countText(ms)} ms` },
];

function Standing({ delivery, onDone }: { readonly delivery: Delivery; readonly onDone: () => void }) {
  const { id, state, event, job, webhook, attempts, next_attempt_at: next } = delivery;
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: state },
          { name: "Event", value: event },
          { name: "Attempts", value: countText(attempts.length) },
        ]}
      />
      <div class="bar" data-actions>
        <ActionButtons actions={deliveryActions} thing={delivery} id={id} onDone={onDone} />
        <span class="soft">A replay sends the same message with the same id once more.</span>
      </div>
      <Facts
        title="Belongs to"
        facts={[
          { name: "Job", value: <Link page="jobs" id={job} /> },
          { name: "Webhook", value: <Link page="webhooks" id={webhook} /> },
          ...timeFacts({ "Next attempt": next }),
        ]}
      />
      <section class="section">
        <h2>Attempts</h2>
        <Grid
          name="Attempts"
          columns={columns}
          rows={attempts}
          idOf={({ at }) => at}
          empty="Baton has not sent the message yet."
        />
      </section>
    </>
  );
}
