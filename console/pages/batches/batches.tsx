/** Batches: files of requests, which run without a client that waits. */
import { useState } from "preact/hooks";
import type { Batch } from "../../../gateway/answers.js";
import { Id, State } from "../../listing/cells.js";
import { isoOf } from "../../listing/facts.js";
import type { Filter } from "../../listing/filters.js";
import { ListPage } from "../../listing/list-page.js";
import { countText } from "../../view/figures.js";
import type { Column } from "../../view/grid.js";
import { Time } from "../../view/times.js";
import { batchActions, batchStatuses } from "./batch-actions.js";
import { BatchForm } from "./batch-form.js";

/** The gateway does not filter batches, so the page looks through all of its pages. */
const filters: readonly Filter<Batch>[] = [
  { name: "state", label: "State", options: batchStatuses, fits: ({ status }, value) => status === value },
  {
    name: "q",
    label: "Search all batches by id, path or metadata",
    fits: ({ id, endpoint, metadata }, value) =>
      `${id} ${endpoint} ${metadataText(metadata)}`.toLowerCase().includes(value.toLowerCase()),
  },
];

const columns: readonly Column<Batch>[] = [
  { title: "Batch", width: "minmax(110px, 1fr)", cell: ({ id }) => <Id id={id} /> },
  { title: "State", width: "96px", cell: ({ status }) => <State of={status} /> },
  { title: "Path", width: "minmax(120px, 1.2fr)", cell: ({ endpoint }) => endpoint },
  { title: "Done", width: "100px", isNumber: true, cell: ({ request_counts: counts }) => doneText(counts) },
  { title: "Failed", width: "50px", isNumber: true, cell: ({ request_counts: { failed } }) => countText(failed) },
  { title: "Submitted", width: "84px", cell: ({ created_at: at }) => <Time at={isoOf(at)} /> },
  { title: "Ended", width: "84px", cell: (batch) => <Time at={endOf(batch)} /> },
];

export function doneText({ total, completed, failed }: Batch["request_counts"]): string {
  return `${countText(completed + failed)} of ${countText(total)}`;
}

export function metadataText(metadata: Batch["metadata"]): string {
  return Object.entries(metadata ?? {})
    .map(([name, value]) => `${name}:${value}`)
    .join(", ");
}

function endOf({ completed_at, failed_at, expired_at, cancelled_at }: Batch): string | null {
  const at = completed_at ?? failed_at ?? expired_at ?? cancelled_at;
  return at === null ? null : isoOf(at);
}

export function BatchesPage() {
  const [isSubmitting, setSubmitting] = useState(false);
  return (
    <ListPage<Batch>
      name="Batches"
      page="batches"
      path="/v1/batches"
      noun={["batch", "batches"]}
      filters={filters}
      columns={columns}
      idOf={({ id }) => id}
      actions={batchActions}
      own={
        <button type="button" aria-expanded={isSubmitting} onClick={() => setSubmitting(!isSubmitting)}>
          Submit
        </button>
      }
    >
      {isSubmitting && <BatchForm />}
    </ListPage>
  );
}
