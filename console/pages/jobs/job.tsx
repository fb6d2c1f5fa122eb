/** A job: how it stands, its attempts and times, and its result. */
import type { Job } from "../../../gateway/answers.js";
import { usePolled, type Polled } from "../../client/poll.js";
import { ActionButtons } from "../../listing/actions.js";
import { Link } from "../../listing/cells.js";
import { Facts, timeFacts, type Fact } from "../../listing/facts.js";
import { countText, Figures } from "../../view/figures.js";
import { lengthText } from "../../view/lengths.js";
import { Page } from "../../view/page.js";
import { hrefOf } from "../../view/route.js";
import { jobActions, jobPath } from "./job-actions.js";
import { JobResult } from "./job-result.js";
import { labelsText } from "./jobs.js";

export function JobPage({ id }: { readonly id: string }) {
  const polled = usePolled<Job>(jobPath(id));
  const job = polled.answer.value;
  return (
    <Page name={`Job ${id}`} polled={polled} above={{ name: "Jobs", href: hrefOf("jobs") }}>
      {job !== undefined && <Standing job={job} polled={polled} />}
    </Page>
  );
}

function Standing({ job, polled }: { readonly job: Job; readonly polled: Polled<Job> }) {
  const { id, state, model, version, type, attempts, attempts_made: made, position, progress, error } = job;
  const { priority } = job;
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: state },
          { name: "Model", value: model },
          { name: "Version", value: version ?? "latest" },
          { name: "Type", value: type },
          { name: "Attempts", value: `${countText(made)} of ${countText(attempts)}` },
          { name: "Priority", value: countText(priority) },
          ...(position === null ? [] : [{ name: "Before it", value: countText(position) }]),
          ...(progress === null ? [] : [{ name: "Tokens", value: tokensText(progress) }]),
        ]}
      />
      {error !== null && (
        <p class="notice bad">
          <span>
            <code>{error.code}</code> {error.message}
          </span>
        </p>
      )}
      <div class="bar" data-actions>
        <ActionButtons actions={jobActions} thing={job} id={id} onDone={() => polled.refresh()} />
      </div>
      <div class="two">
        <Facts title="Times" facts={timesOf(job)} />
        <Facts title="Belongs to" facts={belongingsOf(job)} />
      </div>
      {state === "completed" && <JobResult job={job} />}
    </>
  );
}

function tokensText({ tokens, max_tokens: most }: NonNullable<Job["progress"]>): string {
  return most === null ? countText(tokens) : `${countText(tokens)} of ${countText(most)}`;
}

function timesOf(job: Job): readonly Fact[] {
  const { queued_at: queued, started_at: started, ended_at: ended } = job;
  return [
    ...timeFacts({
      Submitted: job.created_at,
      "Its schedule's time": job.scheduled_for,
      [job.attempts_made > 0 ? "Next attempt" : "Due"]: job.run_at,
      Queued: queued,
      Began: started,
      Ended: ended,
      "Must begin until": job.deadline,
      "Result kept until": job.result_expires_at,
    }),
    ...lengthFact("Waited", queued, started),
    ...lengthFact("Ran", started, ended),
  ];
}

function lengthFact(name: string, from: string | null, to: string | null): readonly Fact[] {
  if (from === null || to === null) return [];
  const ms = Date.parse(to) - Date.parse(from);
  return [{ name, value: ms < 10_000 ? `${countText(ms)} ms` : lengthText(ms) }];
}

function belongingsOf({ id, schedule, request_id: request, labels, type }: Job): readonly Fact[] {
  const written = labelsText(labels);
  return [
    { name: "Schedule", value: <Link page="schedules" id={schedule} /> },
    {
      name: "Request",
      value: type === "infer" ? <span class="mono">{request ?? "–"}</span> : <Link page="streams" id={request} />,
    },
    { name: "Labels", value: written === "" ? <span class="none">–</span> : written },
    { name: "Deliveries", value: <a href={hrefOf("deliveries", [], { job: id })}>Deliveries of this job</a> },
  ];
}
