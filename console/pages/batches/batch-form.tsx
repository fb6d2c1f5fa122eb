/** Uploads a file of requests, and begins a batch. */
import { useRef, useState } from "preact/hooks";
import type { Batch } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import { attempt } from "../../view/failures.js";
import { goTo, hrefOf } from "../../view/route.js";
import { endpointIn } from "./endpoint.js";

/** So many bytes of a file have its first line, unless the line is very long. */
const BEGINNING = 65_536;

/** @returns the id of the uploaded file */
async function upload(file: File): Promise<string> {
  const body = new FormData();
  body.set("purpose", "batch");
  body.set("file", file);
  const uploaded = await change<{ readonly id: string }>("/v1/files", { method: "POST", body });
  return uploaded?.id ?? "";
}

export function BatchForm() {
  const [file, setFile] = useState<File | undefined>(undefined);
  const [endpoint, setEndpoint] = useState("");
  const [window, setWindow] = useState("24h");
  const [isBusy, setBusy] = useState(false);
  /** A batch that the gateway refuses leaves its file for the next attempt. */
  const uploaded = useRef<{ readonly file: File; readonly id: string } | undefined>(undefined);
  const choose = async (chosen: File | undefined) => {
    setFile(chosen);
    const found = endpointIn((await chosen?.slice(0, BEGINNING).text()) ?? "");
    if (found !== undefined) setEndpoint(found);
  };
  const send = async (chosen: File) => {
    if (uploaded.current?.file !== chosen) uploaded.current = { file: chosen, id: await upload(chosen) };
    const body = { input_file_id: uploaded.current.id, endpoint, completion_window: window };
    const batch = await change<Batch>("/v1/batches", { method: "POST", body });
    if (batch !== undefined) goTo(hrefOf("batches", [batch.id]));
  };
  const submit = async () => {
    if (file === undefined) return;
    setBusy(true);
    await attempt("Submit", () => send(file));
    setBusy(false);
  };
  return (
    <form
      class="sheet bar"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label>
        File with a request on each line
        <input required type="file" onChange={({ currentTarget }) => void choose(currentTarget.files?.[0])} />
      </label>
      <label class="grow">
        Path that answers the lines
        <input
          required
          placeholder="/v1/chat/completions"
          value={endpoint}
          onInput={({ currentTarget }) => setEndpoint(currentTarget.value)}
        />
      </label>
      <label>
        Must end within
        <input
          required
          size={6}
          pattern="[1-9][0-9]{0,6}[smhd]"
          title="a number of s, m, h or d"
          value={window}
          onInput={({ currentTarget }) => setWindow(currentTarget.value)}
        />
      </label>
      <button type="submit" class="main" disabled={isBusy}>
        Submit batch
      </button>
    </form>
  );
}
