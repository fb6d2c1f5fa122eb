/** A model: its load, inputs and outputs, its configuration, and where it could not be loaded. */
import type { Fleet, ModelMetadata } from "../../gateway/answers.js";
import { printJson } from "../client/json.js";
import { ErrorNotice } from "../view/failures.js";
import { countText, Figures } from "../view/figures.js";
import { Page } from "../view/page.js";
import { hrefOf } from "../view/route.js";
import { isWhole, useFleet } from "./fleet-state.js";
import { ModelHistory } from "./model-history.js";
import { useOnce } from "./once.js";

export function ModelPage({ model }: { readonly model: string }) {
  const polled = useFleet();
  const fleet = polled.answer.value;
  const whole = fleet !== undefined && isWhole(fleet) ? fleet : undefined;
  const path = `/v2/models/${encodeURIComponent(model)}`;
  const metadata = useOnce<ModelMetadata>(path);
  const config = useOnce<object>(`${path}/config`);
  const versions = whole?.models.filter(({ name }) => name === model) ?? [];
  const remembers = versions.some(({ live_sequences: live }) => live !== undefined);
  return (
    <Page
      name={model}
      polled={polled}
      above={{ name: "Models", href: hrefOf("models") }}
      actions={
        <>
          {remembers && (
            <a class="button" href={hrefOf("sequences", [model])}>
              Sequences
            </a>
          )}
          <a class="button" href={hrefOf("try", [model])}>
            Try it
          </a>
        </>
      }
    >
      {whole !== undefined && <Failed model={model} fleet={whole} />}
      {versions.map((version) => (
        <Version key={`${version.version}/${version.digest}`} version={version} />
      ))}
      <ModelHistory model={model} />
      {metadata.error !== undefined && <ErrorNotice error={metadata.error} />}
      {metadata.answer !== undefined && (
        <div class="two">
          <Tensors title="Inputs" tensors={metadata.answer.inputs} />
          <Tensors title="Outputs" tensors={metadata.answer.outputs} />
        </div>
      )}
      {config.answer !== undefined && (
        <section class="section">
          <h2>Configuration</h2>
          <pre class="sheet" tabIndex={0}>
            {printJson(config.answer, 2)}
          </pre>
        </section>
      )}
    </Page>
  );
}

function Version({ version: model }: { readonly version: Fleet["models"][number] }) {
  const { live_sequences: live, warnings = [] } = model;
  return (
    <section class="section">
      <h2>
        Version {model.version} <code class="soft">{model.digest.slice(0, 12)}</code>
      </h2>
      <Figures
        figures={[
          { name: "Workers", value: countText(model.workers) },
          { name: "Queued", value: countText(model.queued) },
          { name: "Running", value: countText(model.running) },
          ...(live === undefined ? [] : [{ name: "Live sequences", value: countText(live) }]),
          { name: "Set aside", value: countText(model.set_aside) },
        ]}
      />
      {warnings.map((warning) => (
        <p class="notice warn" key={warning}>
          {warning}
        </p>
      ))}
    </section>
  );
}

function Failed({ model, fleet }: { readonly model: string; readonly fleet: Fleet }) {
  const failed = fleet.workers.flatMap(({ name: worker, failed }) =>
    failed.filter(({ name }) => name === model).map((one) => ({ worker, ...one })),
  );
  return (
    <>
      {failed.map(({ worker, version = "", reason }) => (
        <p class="notice bad" key={`${worker}/${version}`}>
          Worker {worker} could not load {model} {version}: {reason}
        </p>
      ))}
    </>
  );
}

function Tensors({ title, tensors }: { readonly title: string; readonly tensors: ModelMetadata["inputs"] }) {
  return (
    <section class="section">
      <h2>{title}</h2>
      <div class="sheet">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Type</th>
              <th scope="col">Shape</th>
            </tr>
          </thead>
          <tbody>
            {tensors.map(({ name, datatype, shape }) => (
              <tr key={name}>
                <td class="mono">{name}</td>
                <td>{datatype}</td>
                <td class="mono">[{shape.join(", ")}]</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
