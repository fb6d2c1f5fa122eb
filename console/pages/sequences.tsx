/** The live sequences of a model. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Sequence } from "../../gateway/answers.js";
import { usePolledBy } from "../client/poll.js";
import { isDigitText } from "../client/sequence-id.js";
import { listSequences, MOST_LISTED, type SequenceList } from "../client/sequences.js";
import { bytesText, countText } from "../view/figures.js";
import { Grid, type Column } from "../view/grid.js";
import { Page } from "../view/page.js";
import { goTo, hrefOf, route } from "../view/route.js";
import { Search } from "../view/search.js";
import { Time } from "../view/times.js";
import { isWhole, useFleet, type AnyFleet } from "./fleet-state.js";
import { ImportForm } from "./import-form.js";

/** A list of more sequences takes several requests, so only the user has it read again. */
const MOST_READ_AGAIN = 1_000;
const REST_MS = 5_000;
/** How long a search stays the same before the page asks for it. */
const SETTLES_MS = 150;

const columns: readonly Column<Sequence>[] = [
  {
    title: "Sequence",
    width: "minmax(140px, 1.4fr)",
    cell: ({ sequence_id: id }) => <span class="mono">{String(id)}</span>,
  },
  {
    title: "State",
    width: "96px",
    cell: ({ state }) => <span class={state === "busy" ? "tag accent" : "tag good"}>{state}</span>,
  },
  { title: "Step", width: "72px", isNumber: true, cell: ({ step }) => countText(step) },
  { title: "Waiting", width: "72px", isNumber: true, cell: ({ waiting }) => countText(waiting) },
  { title: "Checkpoints", width: "96px", isNumber: true, cell: ({ checkpoints }) => countText(checkpoints.length) },
  { title: "State size", width: "88px", isNumber: true, cell: ({ state_bytes: bytes }) => bytesText(bytes) },
  { title: "Version", width: "64px", cell: ({ version }) => version },
  { title: "Last worker", width: "minmax(110px, 1fr)", cell: ({ worker }) => worker ?? <span class="none">gone</span> },
  { title: "Ends if idle", width: "150px", cell: ({ idle_deadline: deadline }) => <Time at={deadline} /> },
];

export function sequenceHref(model: string, id: Sequence["sequence_id"]): string {
  return hrefOf("sequences", [model, String(id)], { type: isDigitText(id) ? "string" : undefined });
}

export function SequencesPage({ model }: { readonly model: string | undefined }) {
  return model === undefined ? <Choice /> : <OfModel model={model} />;
}

/** The models that remember. A key that does not show the whole fleet does not show which do. */
function modelsOf(fleet: AnyFleet | undefined): readonly string[] {
  if (fleet === undefined) return [];
  const found = isWhole(fleet) ? fleet.models.filter(({ live_sequences: live }) => live !== undefined) : fleet.models;
  return [...new Set(found.map(({ name }) => name))].toSorted();
}

function Choice() {
  const polled = useFleet();
  const fleet = polled.answer.value;
  const rows = modelsOf(fleet).map((name) => ({
    name,
    live: fleet && isWhole(fleet) ? liveOf(fleet, name) : undefined,
  }));
  return (
    <Page name="Sequences" polled={polled}>
      <p class="soft">
        Models with memory. Each keeps the state of its sequences in Redis, so any worker can run any step.
      </p>
      <Grid
        name="Sequences"
        columns={[
          { title: "Model", width: "1fr", cell: ({ name }) => name },
          {
            title: "Live sequences",
            width: "140px",
            isNumber: true,
            cell: ({ live }) => (live === undefined ? "" : countText(live)),
          },
        ]}
        rows={rows}
        idOf={({ name }) => name}
        hrefOf={({ name }) => hrefOf("sequences", [name])}
        empty="No worker serves a model with memory."
      />
    </Page>
  );
}

/** @param total of the model; undefined if it says nothing more */
function countedText(found: number, total: number | undefined): string {
  return `${countText(found)} ${total === undefined ? "" : `of ${countText(total)} `}sequences`;
}

function liveOf(fleet: Extract<AnyFleet, { workers: unknown }>, model: string): number {
  // The sequences of a model are counted for all of its versions together.
  return Math.max(0, ...fleet.models.filter(({ name }) => name === model).map(({ live_sequences: live = 0 }) => live));
}

function OfModel({ model }: { readonly model: string }) {
  const search = route.value.query["q"] ?? "";
  const prefix = useSettled(search);
  const polled = usePolledBy<SequenceList>(
    `sequences of ${model} from ${prefix}`,
    (signal) => listSequences(model, prefix, signal),
    ({ sequences }) => (sequences.length > MOST_READ_AGAIN ? Infinity : REST_MS),
  );
  const [isImporting, setImporting] = useState(false);
  // Until the gateway answers a search, the page looks in the answer before.
  const last = useRef<SequenceList>({ sequences: [], total: undefined, hasMore: false });
  last.current = polled.answer.value ?? last.current;
  const isLooking = polled.answer.value === undefined || prefix !== search;
  const rows = last.current.sequences.filter(({ sequence_id: id }) => String(id).startsWith(search));
  return (
    <Page
      name="Sequences"
      polled={polled}
      above={{ name: "Models with memory", href: hrefOf("sequences") }}
      actions={
        <button type="button" aria-expanded={isImporting} onClick={() => setImporting(!isImporting)}>
          Import
        </button>
      }
    >
      {isImporting && <ImportForm model={model} onDone={() => setImporting(false)} />}
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          if (search !== "") goTo(hrefOf("sequences", [model, search]));
        }}
      >
        <Search name="q" label={`Search the sequences of ${model} by the beginning of the id; Enter opens this id`} />
        <p class="soft" role="status">
          {isLooking ? "Looking …" : countedText(rows.length, search === "" ? undefined : last.current.total)}
        </p>
      </form>
      {last.current.hasMore && (
        <p class="notice warn">There are more than {countText(MOST_LISTED)} sequences: search for the others.</p>
      )}
      <Grid
        name="Sequences"
        columns={columns}
        rows={rows}
        idOf={({ sequence_id: id }) => String(id)}
        hrefOf={({ sequence_id: id }) => sequenceHref(model, id)}
        empty={isLooking ? "Looking …" : search === "" ? "No sequence lives." : "No sequence has an id that begins so."}
      />
    </Page>
  );
}

/** Gives the text when the user pauses, so that not every key asks the gateway. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLES_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
