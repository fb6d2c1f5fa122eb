/** Dead letters: requests that workers have set aside, because each run ended its worker. */
import type { DeadRequest } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import type { Action } from "../../listing/actions.js";
import { Link } from "../../listing/cells.js";
import type { Filter } from "../../listing/filters.js";
import { ListPage } from "../../listing/list-page.js";
import { bytesText, countText } from "../../view/figures.js";
import type { Column } from "../../view/grid.js";
import { Time } from "../../view/times.js";

const filters: readonly Filter<DeadRequest>[] = [{ name: "model", label: "Model, whole name" }];

const columns: readonly Column<DeadRequest>[] = [
  { title: "Model", width: "minmax(100px, 1fr)", cell: ({ model }) => model },
  { title: "Reason", width: "minmax(120px, 1fr)", cell: ({ reason }) => <span class="tag bad">{reason}</span> },
  { title: "Runs", width: "48px", isNumber: true, cell: ({ runs }) => countText(runs) },
  { title: "Set aside", width: "110px", cell: ({ set_aside_at: at }) => <Time at={at} /> },
  {
    title: "Sequence",
    width: "minmax(90px, 1fr)",
    cell: ({ sequence_id: id, step }) => (id === null ? <span class="none">–</span> : `${id}, step ${step ?? "?"}`),
  },
  { title: "Size", width: "72px", isNumber: true, cell: ({ bytes }) => bytesText(bytes) },
  { title: "Request", width: "minmax(100px, 1fr)", cell: ({ request_id: id }) => <Link page="streams" id={id} /> },
  { title: "Job", width: "minmax(100px, 1fr)", cell: ({ job }) => <Link page="jobs" id={job} /> },
];

const actions: readonly Action<DeadRequest>[] = [
  {
    verb: "Retry",
    asks: false,
    // Only a job has its request's body, so no other request can run again.
    isFor: ({ job }) => job !== null,
    run: ({ id }) => change(`/v2/dead/${encodeURIComponent(id)}/retry`, { method: "POST" }),
  },
];

export function DeadPage() {
  return (
    <ListPage<DeadRequest>
      name="Dead letters"
      page="dead"
      path="/v2/dead"
      noun={["dead letter", "dead letters"]}
      filters={filters}
      columns={columns}
      idOf={({ id }) => id}
      hrefOf={() => undefined}
      actions={actions}
      actionsWidth="72px"
    />
  );
}
