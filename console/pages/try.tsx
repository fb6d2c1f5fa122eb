/** Try it: a request to a model, made from what the model takes. */
import type { ModelMetadata } from "../../gateway/answers.js";
import { ErrorNotice } from "../view/failures.js";
import { Grid } from "../view/grid.js";
import { Page } from "../view/page.js";
import { hrefOf } from "../view/route.js";
import { isWhole, useFleet } from "./fleet-state.js";
import { useOnce } from "./once.js";
import { TryPrompt } from "./try-prompt.js";
import { TryTensors } from "./try-tensors.js";

/** The answer of `/v1/models`. */
interface Generators {
  readonly data: readonly { readonly id: string }[];
}

export function TryPage({ model }: { readonly model: string | undefined }) {
  return model === undefined ? <Choice /> : <OfModel model={model} />;
}

function Choice() {
  const polled = useFleet();
  const fleet = polled.answer.value;
  const served =
    fleet === undefined ? [] : isWhole(fleet) ? fleet.models.filter(({ workers }) => workers > 0) : fleet.models;
  const rows = [...new Set(served.map(({ name }) => name))].toSorted();
  return (
    <Page name="Try it" polled={polled}>
      <Grid
        name="Try it"
        columns={[{ title: "Model", width: "1fr", cell: (name: string) => name }]}
        rows={rows}
        idOf={(name) => name}
        hrefOf={(name) => hrefOf("try", [name])}
        empty="No worker serves a model."
      />
    </Page>
  );
}

function OfModel({ model }: { readonly model: string }) {
  const metadata = useOnce<ModelMetadata>(`/v2/models/${encodeURIComponent(model)}`);
  const generators = useOnce<Generators>("/v1/models");
  const isGenerator = generators.answer?.data.some(({ id }) => id === model);
  const error = metadata.error ?? generators.error;
  return (
    <Page name={`Try ${model}`} above={{ name: "Try it", href: hrefOf("try") }}>
      {error !== undefined && <ErrorNotice error={error} />}
      {isGenerator === true && <TryPrompt model={model} />}
      {isGenerator === false && metadata.answer !== undefined && (
        <TryTensors model={model} inputs={metadata.answer.inputs} />
      )}
    </Page>
  );
}
