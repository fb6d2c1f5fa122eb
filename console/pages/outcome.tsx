/** An answer as JSON. A long answer is cut, so that the page does not freeze. */
import { printJson } from "../client/json.js";
import { download } from "../view/download.js";

/** In characters. */
const MOST_SHOWN = 65_536;

export interface OutcomeProps {
  readonly value: unknown;
  /** The name of the stored file, without an ending. */
  readonly name: string;
}

export function Outcome({ value, name }: OutcomeProps) {
  const text = printJson(value, 2);
  const isCut = text.length > MOST_SHOWN;
  return (
    <section class="section">
      <pre class="sheet" tabIndex={0}>
        {text.slice(0, MOST_SHOWN)}
      </pre>
      {isCut && (
        <div class="bar">
          <span class="soft">The first 64 KiB are shown.</span>
          <button
            type="button"
            onClick={() => download(`${name}.json`, new Blob([text], { type: "application/json" }))}
          >
            Download
          </button>
        </div>
      )}
    </section>
  );
}
