/** Tensors for a model, with the parameters of a sequence if the user gives any. */
import { useRef, useState } from "preact/hooks";
import type { ModelMetadata } from "../../gateway/answers.js";
import { read } from "../client/ask.js";
import { parseJson, printJson } from "../client/json.js";
import { hasKey } from "../client/key.js";
import { readId } from "../client/sequence-id.js";
import { CopyCurl } from "../view/copy-curl.js";
import { attempt } from "../view/failures.js";
import { Outcome } from "./outcome.js";
import { fill, tensorsText } from "./filling.js";

export interface TryTensorsProps {
  readonly model: string;
  readonly inputs: ModelMetadata["inputs"];
}

export function TryTensors({ model, inputs }: TryTensorsProps) {
  const drawn = () => tensorsText(inputs.map((input) => fill(input, Math.random)));
  const [text, setText] = useState(drawn);
  const [sequence, setSequence] = useState("");
  const [isStart, setStart] = useState(false);
  const [isEnd, setEnd] = useState(false);
  const [answer, setAnswer] = useState<unknown>(undefined);
  const sending = useRef<AbortController | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const path = `/v2/models/${encodeURIComponent(model)}/infer`;
  const bodyText = () => {
    const parameters = { sequence_id: readId(sequence, false), sequence_start: isStart, sequence_end: isEnd };
    return `{${sequence === "" ? "" : `"parameters":${printJson(parameters)},`}"inputs":${text.trim()}}`;
  };
  const send = async () => {
    const controller = new AbortController();
    sending.current = controller;
    setBusy(true);
    await attempt("Send", async () => {
      const body = parseJson(bodyText()) as object;
      // Only the user repeats a request whose answer did not come: a step takes effect once.
      const headers = { "idempotency-key": crypto.randomUUID() };
      try {
        setAnswer(await read<object>(path, { method: "POST", headers, body, signal: controller.signal }));
      } catch (error) {
        if (!controller.signal.aborted) throw error;
      }
    });
    setBusy(false);
  };
  return (
    <>
      <form
        class="sheet section"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <label>
          Inputs: {inputs.map(({ name, datatype, shape }) => `${name} ${datatype} [${shape.join(", ")}]`).join(", ")}
          <textarea
            class="mono"
            rows={10}
            required
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <div class="bar">
          <label>
            Sequence id, or none
            <input value={sequence} onInput={({ currentTarget }) => setSequence(currentTarget.value)} />
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={isStart}
              onChange={({ currentTarget }) => setStart(currentTarget.checked)}
            />{" "}
            Start
          </label>
          <label class="check">
            <input type="checkbox" checked={isEnd} onChange={({ currentTarget }) => setEnd(currentTarget.checked)} />{" "}
            End
          </label>
          <button type="submit" class="main" disabled={isBusy}>
            Send
          </button>
          <button type="button" disabled={!isBusy} onClick={() => sending.current?.abort()}>
            Stop
          </button>
          <button type="button" onClick={() => setText(drawn())}>
            Random values
          </button>
          <CopyCurl path={path} body={bodyText()} hasKey={hasKey()} />
        </div>
      </form>
      {answer !== undefined && (
        <section class="section" aria-label="Answer" aria-live="polite">
          <h2>Answer</h2>
          <Outputs answer={answer} />
          <Outcome value={answer} name={`${model}-answer`} />
        </section>
      )}
    </>
  );
}

interface Output {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly data?: readonly unknown[];
}

/** Values beyond these are in the JSON below the table. */
const MOST_VALUES = 24;

function Outputs({ answer }: { readonly answer: unknown }) {
  const { outputs = [] } = answer as { readonly outputs?: readonly Output[] };
  return (
    <div class="sheet">
      <table>
        <thead>
          <tr>
            <th scope="col">Output</th>
            <th scope="col">Type</th>
            <th scope="col">Shape</th>
            <th scope="col">Values</th>
          </tr>
        </thead>
        <tbody>
          {outputs.map(({ name, datatype, shape, data = [] }) => (
            <tr key={name}>
              <td class="mono">{name}</td>
              <td>{datatype}</td>
              <td class="mono">[{shape.join(", ")}]</td>
              <td class="mono">
                {data.slice(0, MOST_VALUES).map(String).join(", ")}
                {data.length > MOST_VALUES && " …"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
