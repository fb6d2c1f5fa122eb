/** Jobs: requests whose clients come back for the result. */
import { useState } from "preact/hooks";
import type { Job } from "../../../gateway/answers.js";
import { Id, State } from "../../listing/cells.js";
import type { Filter } from "../../listing/filters.js";
import { ListPage } from "../../listing/list-page.js";
import { countText } from "../../view/figures.js";
import type { Column } from "../../view/grid.js";
import { Time } from "../../view/times.js";
import { jobText } from "./bodies.js";
import { jobActions, jobStates } from "./job-actions.js";
import { SubmitForm } from "./submit-form.js";

const filters: readonly Filter<Job>[] = [
  { name: "state", label: "State", options: jobStates },
  { name: "model", label: "Model, whole name" },
  { name: "label", label: "Label, such as team:blue", isWhole: (text) => /^[\w.-]{1,64}:/.test(text) },
  { name: "schedule", label: "Schedule, whole id" },
];

const columns: readonly Column<Job>[] = [
  { title: "Job", width: "minmax(106px, 1.6fr)", cell: ({ id }) => <Id id={id} /> },
  { title: "State", width: "92px", cell: ({ state }) => <State of={state} /> },
  { title: "Model", width: "minmax(80px, 1fr)", cell: ({ model }) => model },
  { title: "Type", width: "74px", cell: ({ type }) => type },
  {
    title: "Attempts",
    width: "64px",
    isNumber: true,
    cell: ({ attempts_made: made, attempts }) => `${countText(made)} of ${countText(attempts)}`,
  },
  { title: "Labels", width: "minmax(60px, 1fr)", cell: ({ labels }) => labelsText(labels) },
  { title: "Submitted", width: "84px", cell: ({ created_at: at }) => <Time at={at} /> },
  { title: "Ended", width: "84px", cell: ({ ended_at: at }) => <Time at={at} /> },
];

export function labelsText(labels: Job["labels"]): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}:${value}`)
    .join(", ");
}

export function JobsPage() {
  const [isSubmitting, setSubmitting] = useState(false);
  return (
    <ListPage<Job>
      name="Jobs"
      page="jobs"
      path="/v2/jobs"
      noun={["job", "jobs"]}
      filters={filters}
      columns={columns}
      idOf={({ id }) => id}
      actions={jobActions}
      own={
        <button type="button" aria-expanded={isSubmitting} onClick={() => setSubmitting(!isSubmitting)}>
          Submit
        </button>
      }
    >
      {isSubmitting && (
        <SubmitForm
          page="jobs"
          noun="job"
          label="The job, as POST /v2/models/<model>/jobs takes it"
          textFor={jobText}
        />
      )}
    </ListPage>
  );
}
