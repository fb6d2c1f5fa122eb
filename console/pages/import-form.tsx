/** Makes a sequence from an exported state. */
import { useState } from "preact/hooks";
import { change } from "../client/ask.js";
import { sequencePath } from "../client/sequence-id.js";
import { attempt } from "../view/failures.js";
import { goTo, hrefOf } from "../view/route.js";

export interface ImportProps {
  readonly model: string;
  readonly onDone: () => void;
}

export function ImportForm({ model, onDone }: ImportProps) {
  const [id, setId] = useState("");
  const [file, setFile] = useState<File | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const send = async () => {
    if (file === undefined) return;
    setBusy(true);
    const path = sequencePath(model, id, false, "/state");
    const isDone = await attempt(`Import ${id}`, () => change(path, { method: "PUT", body: file }));
    setBusy(false);
    if (!isDone) return;
    onDone();
    goTo(hrefOf("sequences", [model, id]));
  };
  return (
    <form
      class="sheet bar"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label>
        New sequence id
        <input required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </label>
      <label>
        Exported state
        <input required type="file" onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])} />
      </label>
      <button type="submit" class="main" disabled={isBusy}>
        Import state
      </button>
    </form>
  );
}
