/** The requests for a model that wait or run, streams and others. */
import type { OpenRequests } from "../../gateway/answers.js";
import { usePolled } from "../client/poll.js";
import { ErrorNotice } from "../view/failures.js";
import { countText } from "../view/figures.js";
import { Grid, type Column } from "../view/grid.js";
import { filter, hrefOf, route } from "../view/route.js";
import { Time } from "../view/times.js";
import { useFleet } from "./fleet-state.js";

type Open = OpenRequests["requests"][number];

const columns: readonly Column<Open>[] = [
  { title: "Request", width: "minmax(180px, 2fr)", cell: ({ id }) => <span class="mono">{id}</span> },
  {
    title: "State",
    width: "88px",
    cell: ({ state }) => <span class={state === "running" ? "tag accent" : "tag"}>{state}</span>,
  },
  { title: "Records", width: "88px", isNumber: true, cell: ({ index }) => (index === null ? "" : countText(index)) },
  {
    title: "Sequence",
    width: "minmax(90px, 1fr)",
    cell: ({ sequence_id: id, step }) => (id === null ? "" : `${String(id)}, step ${step ?? ""}`),
  },
  { title: "Worker", width: "minmax(110px, 1fr)", cell: ({ worker }) => worker ?? <span class="none">none yet</span> },
  { title: "Taken", width: "72px", isNumber: true, cell: ({ deliveries }) => countText(deliveries) },
  { title: "Since", width: "150px", cell: ({ admitted_at: at }) => <Time at={at} /> },
];

/** A user chooses the model, since a page asks for one list at a time. */
export function OpenRequestsOfModel() {
  const { models = [] } = useFleet().answer.value ?? {};
  const names = [...new Set(models.map(({ name }) => name))].toSorted();
  const chosen = route.value.query["model"] ?? "";
  return (
    <section class="section">
      <h2>Wait or run</h2>
      <label>
        Model
        <select value={chosen} onChange={({ currentTarget }) => filter({ model: currentTarget.value })}>
          <option value="">Choose a model</option>
          {[...new Set([...names, ...(chosen === "" ? [] : [chosen])])].map((name) => (
            <option value={name} key={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {chosen !== "" && <List model={chosen} key={chosen} />}
    </section>
  );
}

function List({ model }: { readonly model: string }) {
  const polled = usePolled<OpenRequests>(`/v2/models/${encodeURIComponent(model)}/requests?limit=1000`);
  const { requests = [], next } = polled.answer.value ?? {};
  return (
    <>
      {polled.error.value !== undefined && <ErrorNotice error={polled.error.value} />}
      {next !== undefined && <p class="notice warn">More requests wait than the list shows.</p>}
      <Grid
        name={`Requests of ${model}`}
        columns={columns}
        rows={requests}
        idOf={({ id }) => id}
        hrefOf={({ id, stream }) => (stream ? hrefOf("streams", [id]) : undefined)}
        empty="No request of yours waits or runs."
      />
    </>
  );
}
