/** Schedules: jobs that Baton submits again and again. */
import { useState } from "preact/hooks";
import type { Schedule } from "../../../gateway/answers.js";
import { Id, Link, State } from "../../listing/cells.js";
import type { Filter } from "../../listing/filters.js";
import { ListPage } from "../../listing/list-page.js";
import { countText } from "../../view/figures.js";
import type { Column } from "../../view/grid.js";
import { lengthText } from "../../view/lengths.js";
import { Time } from "../../view/times.js";
import { scheduleText } from "./bodies.js";
import { scheduleActions, scheduleStates } from "./schedule-actions.js";
import { SubmitForm } from "./submit-form.js";

/** The gateway does not filter schedules, so the page looks through all of its pages. */
const filters: readonly Filter<Schedule>[] = [
  { name: "state", label: "State", options: scheduleStates, fits: ({ state }, value) => state === value },
  {
    name: "q",
    label: "Search all schedules by id, model, time or zone",
    fits: (one, value) =>
      [one.id, one.model, rhythmText(one)].some((text) => text.toLowerCase().includes(value.toLowerCase())),
  },
];

const columns: readonly Column<Schedule>[] = [
  { title: "Schedule", width: "minmax(100px, 1.2fr)", cell: ({ id }) => <Id id={id} /> },
  { title: "State", width: "66px", cell: ({ state }) => <State of={state} /> },
  { title: "Model", width: "minmax(80px, 1fr)", cell: ({ model }) => model },
  { title: "Times", width: "minmax(120px, 1.4fr)", cell: (one) => rhythmText(one) },
  { title: "Next job", width: "84px", cell: ({ next_run_at: at }) => <Time at={at} /> },
  { title: "Jobs", width: "44px", isNumber: true, cell: ({ runs }) => countText(runs) },
  { title: "Last job", width: "minmax(90px, 1fr)", cell: ({ last_job_id: id }) => <Link page="jobs" id={id} /> },
];

export function rhythmText({ cron, timezone, every }: Schedule): string {
  if (every !== null) return `every ${every % 1_000 === 0 ? lengthText(every) : `${countText(every)} ms`}`;
  return `${cron ?? ""} in ${timezone ?? "UTC"}`;
}

export function SchedulesPage() {
  const [isSubmitting, setSubmitting] = useState(false);
  return (
    <ListPage<Schedule>
      name="Schedules"
      page="schedules"
      path="/v2/schedules"
      noun={["schedule", "schedules"]}
      filters={filters}
      columns={columns}
      idOf={({ id }) => id}
      actions={scheduleActions}
      actionsWidth="236px"
      own={
        <button type="button" aria-expanded={isSubmitting} onClick={() => setSubmitting(!isSubmitting)}>
          Submit
        </button>
      }
    >
      {isSubmitting && (
        <SubmitForm
          page="schedules"
          noun="schedule"
          label="The schedule, as POST /v2/models/<model>/schedules takes it"
          textFor={(target) => scheduleText(target, Intl.DateTimeFormat().resolvedOptions().timeZone)}
        />
      )}
    </ListPage>
  );
}
