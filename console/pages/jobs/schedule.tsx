/** A schedule: its times, its last and next jobs, and the job that it submits. */
import type { Schedule } from "../../../gateway/answers.js";
import { usePolled, type Polled } from "../../client/poll.js";
import { ActionButtons } from "../../listing/actions.js";
import { Link } from "../../listing/cells.js";
import { Facts, timeFacts, type Fact } from "../../listing/facts.js";
import { countText, Figures } from "../../view/figures.js";
import { Page } from "../../view/page.js";
import { goTo, hrefOf } from "../../view/route.js";
import { Time } from "../../view/times.js";
import { Outcome } from "../outcome.js";
import { scheduleActions, schedulePath } from "./schedule-actions.js";
import { rhythmText } from "./schedules.js";

export function SchedulePage({ id }: { readonly id: string }) {
  const polled = usePolled<Schedule>(schedulePath(id));
  const schedule = polled.answer.value;
  return (
    <Page name={`Schedule ${id}`} polled={polled} above={{ name: "Schedules", href: hrefOf("schedules") }}>
      {schedule !== undefined && <Standing schedule={schedule} polled={polled} />}
    </Page>
  );
}

interface StandingProps {
  readonly schedule: Schedule;
  readonly polled: Polled<Schedule>;
}

function Standing({ schedule, polled }: StandingProps) {
  const { id, state, model, version, runs, limit, last_error: failure, next_runs: next, job } = schedule;
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: state },
          { name: "Model", value: model },
          { name: "Version", value: version ?? "latest" },
          { name: "Times", value: rhythmText(schedule) },
          { name: "Jobs", value: limit === null ? countText(runs) : `${countText(runs)} of ${countText(limit)}` },
        ]}
      />
      {failure !== null && (
        <p class="notice bad">
          <span>
            The gateway refused a job <Time at={failure.at} />: <code>{failure.code}</code> {failure.message}
          </span>
        </p>
      )}
      <div class="bar" data-actions>
        <ActionButtons
          actions={scheduleActions}
          thing={schedule}
          id={id}
          onDone={(verb) => (verb === "Delete" ? goTo(hrefOf("schedules")) : polled.refresh())}
        />
        <span class="soft">The jobs of a schedule stay, even if you delete the schedule.</span>
      </div>
      <div class="two">
        <Facts title="Jobs" facts={jobFacts(schedule)} />
        <Facts title="Next times" facts={next.map((at, i) => ({ name: countText(i + 1), value: <Time at={at} /> }))} />
      </div>
      <section class="section">
        <h2>The job</h2>
        <Outcome name={`${id}-job`} value={job} />
      </section>
    </>
  );
}

function jobFacts({ id, created_at, start_at, end_at, last_run_at, last_job_id }: Schedule): readonly Fact[] {
  return [
    ...timeFacts({
      Made: created_at,
      "First time from": start_at,
      "Last time until": end_at,
      "Last time": last_run_at,
    }),
    { name: "Last job", value: <Link page="jobs" id={last_job_id} /> },
    { name: "All jobs", value: <a href={hrefOf("jobs", [], { schedule: id })}>Jobs of this schedule</a> },
  ];
}
