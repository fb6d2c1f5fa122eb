/** The beginning of an answer that may be large, and a button that stores the whole answer. */
import { useState } from "preact/hooks";
import { ask, readBeginning } from "../client/ask.js";
import { download } from "../view/download.js";
import { attempt } from "../view/failures.js";

/** In bytes. A page with more text than this would freeze. */
const MOST_SHOWN = 65_536;

export interface LongTextProps {
  /** What the text is, such as `output`, which stands in the names of the buttons. */
  readonly of: string;
  /** Gives the whole answer. */
  readonly path: string;
  /** The name of the stored file. */
  readonly file: string;
}

export function LongText({ of, path, file }: LongTextProps) {
  const [shown, setShown] = useState<{ readonly text: string; readonly isWhole: boolean } | undefined>(undefined);
  const show = () => attempt(`Show ${of}`, async () => setShown(await readBeginning(path, MOST_SHOWN)));
  const store = () => attempt(`Download ${of}`, async () => download(file, await (await ask(path)).blob()));
  return (
    <>
      {shown !== undefined && (
        <pre class="sheet" tabIndex={0}>
          {shown.text}
        </pre>
      )}
      <div class="bar">
        {shown === undefined && (
          <button type="button" onClick={() => void show()}>
            Show {of}
          </button>
        )}
        <button type="button" onClick={() => void store()}>
          Download {of}
        </button>
        <span class="soft">{shown?.isWhole === false ? "The first 64 KiB are shown." : ""}</span>
      </div>
    </>
  );
}
