/** A sequence: how it stands, and its checkpoints, to fork from and to rewind to. */
import { useState } from "preact/hooks";
import type { Sequence } from "../../gateway/answers.js";
import { ask, change } from "../client/ask.js";
import { usePolled, type Polled } from "../client/poll.js";
import { isDigitText, readId, sequencePath, type SequenceId } from "../client/sequence-id.js";
import { Confirm } from "../view/confirm.js";
import { download } from "../view/download.js";
import { attempt } from "../view/failures.js";
import { bytesText, countText, Figures } from "../view/figures.js";
import { Page } from "../view/page.js";
import { goTo, hrefOf, route } from "../view/route.js";
import { Time } from "../view/times.js";
import { CheckpointLine } from "./checkpoint-line.js";
import { sequenceHref } from "./sequences.js";

export interface SequenceProps {
  readonly model: string;
  /** As in the address. */
  readonly id: string;
}

export function SequencePage({ model, id }: SequenceProps) {
  const isText = route.value.query["type"] === "string";
  const polled = usePolled<Sequence>(sequencePath(model, id, isText));
  const sequence = polled.answer.value;
  return (
    <Page
      name={`Sequence ${id}`}
      polled={polled}
      above={{ name: `Sequences of ${model}`, href: hrefOf("sequences", [model]) }}
    >
      {sequence !== undefined && <Standing model={model} id={id} isText={isText} sequence={sequence} polled={polled} />}
    </Page>
  );
}

interface StandingProps extends SequenceProps {
  readonly isText: boolean;
  readonly sequence: Sequence;
  readonly polled: Polled<Sequence>;
}

function Standing({ model, id, isText, sequence, polled }: StandingProps) {
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const steps = sequence.checkpoints.toSorted((a, b) => a - b);
  const newest = steps.at(-1);
  const step = chosen !== undefined && steps.includes(chosen) ? chosen : newest;
  const pathTo = (below: string) => sequencePath(model, id, isText, below);
  const rewind = () =>
    attempt(`Rewind ${id}`, () => change(pathTo("/rewind"), { method: "POST", body: { step } })).then(() => {
      setChosen(undefined);
      polled.refresh();
    });
  const end = async () => {
    if (await attempt(`End ${id}`, () => change(pathTo(""), { method: "DELETE" }))) goTo(hrefOf("sequences", [model]));
  };
  const exportState = () =>
    attempt(`Export ${id}`, async () => {
      const path = pathTo("/state");
      const response = await ask(step === undefined ? path : `${path}${isText ? "&" : "?"}step=${step}`);
      download(`${model}-${id}-step-${step ?? sequence.step}.state`, await response.blob());
    });
  return (
    <>
      <Facts sequence={sequence} />
      <section class="sheet section" data-actions>
        <h2>Checkpoints</h2>
        <CheckpointLine steps={steps} chosen={step} onChoose={setChosen} />
        {step !== undefined && (
          <>
            <ForkForm
              step={step}
              isText={isText || (typeof sequence.sequence_id === "string" && !isDigitText(sequence.sequence_id))}
              fork={(to) =>
                attempt(`Fork ${id}`, () =>
                  change(pathTo("/fork"), { method: "POST", body: { sequence_id: to, step } }),
                ).then((isDone) => {
                  if (isDone) goTo(sequenceHref(model, to as Sequence["sequence_id"]));
                })
              }
            />
            <div class="bar">
              <Confirm
                verb="Rewind"
                names={`Rewind ${id} to step ${step}`}
                isDisabled={step === newest}
                onConfirm={rewind}
              />
              <button type="button" onClick={() => void exportState()}>
                Export
              </button>
              <span class="soft">
                {step === newest
                  ? "Choose an earlier checkpoint to rewind to it."
                  : `Rewind makes step ${step + 1} the next; later checkpoints go.`}
              </span>
            </div>
          </>
        )}
      </section>
      <div class="bar">
        <Confirm verb="End" names={`End ${id}`} onConfirm={end} />
        <span class="soft">Ends the sequence and removes its state. Steps from before still run.</span>
      </div>
    </>
  );
}

function Facts({ sequence }: { readonly sequence: Sequence }) {
  const {
    state,
    step,
    waiting,
    last_step_at: rested,
    idle_deadline: deadline,
    worker,
    version,
    state_bytes: bytes,
  } = sequence;
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: state },
          { name: "Last step", value: countText(step) },
          { name: "Steps behind", value: countText(waiting) },
          { name: "State size", value: bytesText(bytes) },
          { name: "Last worker", value: worker ?? "gone" },
          { name: "Version", value: version },
        ]}
      />
      {deadline !== null && (
        <p class="soft">
          The sequence came to rest <Time at={rested} />. Without another step it ends <Time at={deadline} />.
        </p>
      )}
    </>
  );
}

interface ForkProps {
  readonly step: number;
  /** Whether the ids of this model's sequences are texts. */
  readonly isText: boolean;
  readonly fork: (to: SequenceId) => Promise<void>;
}

function ForkForm({ step, isText, fork }: ForkProps) {
  const [id, setId] = useState("");
  return (
    <form
      class="bar"
      onSubmit={(event) => {
        event.preventDefault();
        void fork(readId(id, isText));
      }}
    >
      <label>
        New sequence id, which continues from step {step}
        <input required value={id} onInput={({ currentTarget }) => setId(currentTarget.value)} />
      </label>
      <button type="submit" class="main">
        Fork
      </button>
    </form>
  );
}
