/** Submits a job or a schedule to a model, from a text that fits the model. */
import { useEffect, useState } from "preact/hooks";
import type { ModelMetadata } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import { parseJson } from "../../client/json.js";
import { hasKey } from "../../client/key.js";
import { Secret } from "../../listing/secret.js";
import { CopyCurl } from "../../view/copy-curl.js";
import { attempt } from "../../view/failures.js";
import { goTo, hrefOf } from "../../view/route.js";
import { isWhole, type AnyFleet } from "../fleet-state.js";
import { useOnce } from "../once.js";
import type { Target } from "./bodies.js";

export interface SubmitFormProps {
  /** The page of the thing, whose name is the last part of the path, too. */
  readonly page: "jobs" | "schedules";
  readonly noun: string;
  readonly label: string;
  readonly textFor: (target: Target) => string;
}

/** The members of a job or a schedule that the form reads. Only a job has a webhook of its own. */
interface Made {
  readonly id: string;
  readonly webhook?: { readonly secret?: string | undefined } | undefined;
}

/** The answer of `/v1/models`. */
interface Generators {
  readonly data: readonly { readonly id: string }[];
}

export function SubmitForm({ page, noun, label, textFor }: SubmitFormProps) {
  const fleet = useOnce<AnyFleet>("/v2/fleet").answer;
  const { models = [] } = fleet ?? {};
  const names = [...new Set(models.map(({ name }) => name))].toSorted();
  const [chosen, setModel] = useState<string | undefined>(undefined);
  const model = chosen ?? names[0];
  return (
    <section class="sheet section" aria-label="Submit">
      <label>
        Model to run
        <select value={model ?? ""} onChange={({ currentTarget }) => setModel(currentTarget.value)}>
          {names.map((name) => (
            <option value={name} key={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {model !== undefined && fleet !== undefined && (
        <OfModel
          key={model}
          page={page}
          noun={noun}
          label={label}
          textFor={textFor}
          model={model}
          remembers={remembers(fleet, model)}
        />
      )}
    </section>
  );
}

interface OfModelProps extends SubmitFormProps {
  readonly model: string;
  readonly remembers: boolean;
}

function OfModel({ page, noun, label, textFor, model, remembers }: OfModelProps) {
  const path = `/v2/models/${encodeURIComponent(model)}`;
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [signed, setSigned] = useState<{ readonly id: string; readonly secret: string } | undefined>(undefined);
  const target = useTarget(model, path, remembers);
  useEffect(() => {
    if (target !== undefined) setText(textFor(target));
  }, [target !== undefined]);
  const send = async () => {
    setBusy(true);
    await attempt("Submit", async () => {
      const body = parseJson(text) as object;
      const made = await change<Made>(`${path}/${page}`, { method: "POST", body });
      if (made === undefined) return;
      const secret = made.webhook?.secret;
      // Only this answer has the secret, so the user sees it before the page of the job.
      if (secret === undefined) goTo(hrefOf(page, [made.id]));
      else setSigned({ id: made.id, secret });
    });
    setBusy(false);
  };
  if (signed !== undefined) {
    return <Secret id={signed.id} secret={signed.secret} onClose={() => goTo(hrefOf(page, [signed.id]))} />;
  }
  return (
    <form
      class="section"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label>
        {label}
        <textarea
          class="mono"
          rows={10}
          required
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <div class="bar">
        <button type="submit" class="main" disabled={isBusy}>
          Submit {noun}
        </button>
        <CopyCurl path={`${path}/${page}`} body={text} hasKey={hasKey()} />
      </div>
    </form>
  );
}

function useTarget(model: string, path: string, remembers: boolean): Target | undefined {
  const metadata = useOnce<ModelMetadata>(path).answer;
  const generators = useOnce<Generators>("/v1/models").answer;
  if (metadata === undefined || generators === undefined) return undefined;
  return { inputs: metadata.inputs, isGenerator: generators.data.some(({ id }) => id === model), remembers };
}

/** A key that does not show the whole fleet does not show whether a model remembers. */
function remembers(fleet: AnyFleet, model: string): boolean {
  return isWhole(fleet) && fleet.models.some(({ name, live_sequences: live }) => name === model && live !== undefined);
}
