/** Dead letters: requests that workers have set aside, because each run ended its worker. */
import type { DeadRequest, Page as PageOf } from "../../gateway/answers.js";
import { change, read } from "../client/ask.js";
import { usePolledBy, type Polled } from "../client/poll.js";
import { attempt } from "../view/failures.js";
import { bytesText, countText } from "../view/figures.js";
import { Grid, type Column } from "../view/grid.js";
import { Page } from "../view/page.js";
import { hrefOf, route } from "../view/route.js";
import { Search } from "../view/search.js";
import { Time } from "../view/times.js";

/** The most that a gateway gives at once, the newest first. */
const LIMIT = 100;

export function DeadPage() {
  const model = route.value.query["model"] ?? "";
  return <OfModel key={model} model={model} />;
}

/** @param model empty for all models */
function OfModel({ model }: { readonly model: string }) {
  const query = new URLSearchParams({ limit: String(LIMIT), ...(model !== "" && { model }) }).toString();
  const polled = usePolledBy<PageOf<DeadRequest>>(`dead ${query}`, (signal) =>
    read<PageOf<DeadRequest>>(`/v2/dead?${query}`, { signal }),
  );
  const page = polled.answer.value;
  return (
    <Page name="Dead letters" polled={polled}>
      <div class="bar">
        <Search name="model" label="Model, whole name" />
      </div>
      {page !== undefined && (
        <>
          <Grid
            name="Dead letters"
            columns={columnsWith(polled)}
            rows={page.data}
            idOf={({ id }) => id}
            empty={model === "" ? "No request is set aside." : `No request of ${model} is set aside.`}
          />
          {page.has_more && <p class="soft">These are the newest {countText(LIMIT)}. There are more.</p>}
        </>
      )}
    </Page>
  );
}

function columnsWith(polled: Polled<unknown>): readonly Column<DeadRequest>[] {
  const retry = async (id: string) => {
    await attempt(`Retry ${id}`, () => change(`/v2/dead/${encodeURIComponent(id)}/retry`, { method: "POST" }));
    polled.refresh();
  };
  return [
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
    { title: "Request", width: "minmax(120px, 1.4fr)", cell: ({ request_id: id }) => <RequestLink id={id} /> },
    {
      title: "",
      width: "72px",
      // Only a job has its request's body, so no other request can run again.
      cell: ({ id, job }) =>
        job !== null && (
          <button type="button" class="small" aria-label={`Retry ${id}`} onClick={() => void retry(id)}>
            Retry
          </button>
        ),
    },
  ];
}

function RequestLink({ id }: { readonly id: string | null }) {
  if (id === null) return <span class="none">–</span>;
  return (
    <a href={hrefOf("streams", [id])} class="mono">
      {id}
    </a>
  );
}
