/** The result of a job: whole if it is short, else its beginning and a download. */
import type { Job } from "../../../gateway/answers.js";
import { LongText } from "../../listing/long-text.js";
import { Outcome } from "../outcome.js";

export function JobResult({ job: { id, result, result_url: url, result_expires_at: until } }: { readonly job: Job }) {
  const isGone = until !== null && Date.parse(until) < Date.now();
  return (
    <section class="section">
      <h2>Result</h2>
      {result !== null && <Outcome name={id} value={result} />}
      {result === null && isGone && <p class="soft">Baton no longer keeps the result.</p>}
      {/* The view of a job has only a short result. */}
      {result === null && !isGone && <LongText of="result" path={url} file={`${id}.json`} />}
    </section>
  );
}
