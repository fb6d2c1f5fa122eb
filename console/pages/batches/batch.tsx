/** A batch: its progress, its times, its faults and its files. */
import type { Batch } from "../../../gateway/answers.js";
import { usePolled, type Polled } from "../../client/poll.js";
import { ActionButtons } from "../../listing/actions.js";
import { Facts, timeFacts, type Fact } from "../../listing/facts.js";
import { LongText } from "../../listing/long-text.js";
import { countText, Figures } from "../../view/figures.js";
import { Grid, type Column } from "../../view/grid.js";
import { Page } from "../../view/page.js";
import { hrefOf } from "../../view/route.js";
import { batchActions, batchPath } from "./batch-actions.js";
import { doneText, metadataText } from "./batches.js";

export function BatchPage({ id }: { readonly id: string }) {
  const polled = usePolled<Batch>(batchPath(id));
  const batch = polled.answer.value;
  return (
    <Page name={`Batch ${id}`} polled={polled} above={{ name: "Batches", href: hrefOf("batches") }}>
      {batch !== undefined && <Standing batch={batch} polled={polled} />}
    </Page>
  );
}

type Fault = NonNullable<Batch["errors"]>["data"][number];

const columns: readonly Column<Fault>[] = [
  { title: "Line", width: "72px", isNumber: true, cell: ({ line }) => (line === null ? "" : countText(line)) },
  { title: "Code", width: "200px", cell: ({ code }) => <code>{code}</code> },
  { title: "Message", width: "1fr", cell: ({ message }) => <span title={message}>{message}</span> },
];

function Standing({ batch, polled }: { readonly batch: Batch; readonly polled: Polled<Batch> }) {
  const { id, status, endpoint, request_counts: counts, errors } = batch;
  const faults = errors?.data ?? [];
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: status },
          { name: "Path", value: endpoint },
          { name: "Done", value: doneText(counts) },
          { name: "Failed", value: countText(counts.failed) },
        ]}
      />
      {counts.total > 0 && (
        <progress max={counts.total} value={counts.completed + counts.failed} aria-label="Requests done" />
      )}
      <div class="bar" data-actions>
        <ActionButtons actions={batchActions} thing={batch} id={id} onDone={() => polled.refresh()} />
      </div>
      <Facts title="Times" facts={factsOf(batch)} />
      {faults.length > 0 && (
        <section class="section">
          <h2>Faults</h2>
          <Grid
            name="Faults"
            columns={columns}
            rows={faults}
            idOf={({ line, code }) => `${line ?? ""} ${code}`}
            empty="None."
          />
        </section>
      )}
      <Files batch={batch} />
    </>
  );
}

function factsOf(batch: Batch): readonly Fact[] {
  const metadata = metadataText(batch.metadata);
  return [
    ...timeFacts({
      Submitted: batch.created_at,
      Began: batch.in_progress_at,
      "Began to end": batch.finalizing_at,
      Completed: batch.completed_at,
      Failed: batch.failed_at,
      Cancelling: batch.cancelling_at,
      Cancelled: batch.cancelled_at,
      Expired: batch.expired_at,
      "Must end until": batch.expires_at,
    }),
    { name: "Window", value: batch.completion_window },
    { name: "Metadata", value: metadata === "" ? <span class="none">–</span> : metadata },
  ];
}

function Files({ batch }: { readonly batch: Batch }) {
  const { input_file_id: input, output_file_id: output, error_file_id: errors } = batch;
  const files = [
    ["output", output],
    ["errors", errors],
    ["input", input],
  ] as const;
  return (
    <section class="section">
      <h2>Files</h2>
      {files.map(
        ([of, file]) =>
          file !== null && (
            <LongText
              key={of}
              of={of}
              path={`/v1/files/${encodeURIComponent(file)}/content`}
              file={`${batch.id}-${of}.jsonl`}
            />
          ),
      )}
    </section>
  );
}
