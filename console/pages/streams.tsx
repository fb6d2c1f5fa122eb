/** Streams: one is opened by the id of its request. */
import { useState } from "preact/hooks";
import { Grid, type Column } from "../view/grid.js";
import { Page } from "../view/page.js";
import { goTo, hrefOf } from "../view/route.js";
import { OpenRequestsOfModel } from "./open-requests.js";
import { opened, type OpenedStream } from "./opened-streams.js";

const columns: readonly Column<OpenedStream>[] = [
  { title: "Request", width: "minmax(200px, 2fr)", cell: ({ id }) => <span class="mono">{id}</span> },
  { title: "Model", width: "minmax(120px, 1fr)", cell: ({ model }) => model },
];

export function StreamsPage() {
  const [id, setId] = useState("");
  return (
    <Page name="Streams">
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          if (id.trim() !== "") goTo(hrefOf("streams", [id.trim()]));
        }}
      >
        <label class="grow">
          Id of a request, as in the header Baton-Request-Id of its answer
          <input type="search" required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
        </label>
        <button type="submit" class="main">
          Open
        </button>
      </form>
      <OpenRequestsOfModel />
      <section class="section">
        <h2>Opened in this tab</h2>
        <Grid
          name="Streams"
          columns={columns}
          rows={opened.value}
          idOf={({ id }) => id}
          hrefOf={({ id }) => hrefOf("streams", [id])}
          empty="None so far. Try it sends a prompt and opens its stream."
        />
      </section>
    </Page>
  );
}
