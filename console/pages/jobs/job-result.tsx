/** The result of a job: whole if it is short, else its beginning and a download. */
import { useState } from "preact/hooks";
import type { Job } from "../../../gateway/answers.js";
import { ask } from "../../client/ask.js";
import { download } from "../../view/download.js";
import { attempt } from "../../view/failures.js";
import { Outcome } from "../outcome.js";

export function JobResult({ job: { id, result, result_url: url, result_expires_at: until } }: { readonly job: Job }) {
  if (result !== null) {
    return (
      <section class="section">
        <h2>Result</h2>
        <Outcome name={id} value={result} />
      </section>
    );
  }
  const isGone = until !== null && Date.parse(until) < Date.now();
  return (
    <section class="section">
      <h2>Result</h2>
      {isGone ? <p class="soft">The result is no longer kept.</p> : <LongResult id={id} url={url} />}
    </section>
  );
}

/** In bytes. */
const MOST_SHOWN = 65_536;

interface LongResultProps {
  readonly id: string;
  readonly url: string;
}

function LongResult({ id, url }: LongResultProps) {
  const [text, setText] = useState<string | undefined>(undefined);
  const load = async () => (await ask(url)).blob();
  const show = () => attempt(`Show ${id}`, async () => setText(await beginningOf(await load())));
  const store = () => attempt(`Download ${id}`, async () => download(`${id}.json`, await load()));
  return (
    <>
      {text !== undefined && (
        <pre class="sheet" tabIndex={0}>
          {text}
        </pre>
      )}
      <div class="bar">
        {text === undefined && (
          <button type="button" onClick={() => void show()}>
            Show the first 64 KiB
          </button>
        )}
        <button type="button" onClick={() => void store()}>
          Download
        </button>
        <span class="soft">
          {text === undefined ? "The result has more than 64 KiB." : "The first 64 KiB are shown."}
        </span>
      </div>
    </>
  );
}

function beginningOf(bytes: Blob): Promise<string> {
  return bytes.slice(0, MOST_SHOWN).text();
}
