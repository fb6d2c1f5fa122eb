/** All models: those that workers serve, and those that no worker could load. */
import { Page } from "../view/page.js";
import { route } from "../view/route.js";
import { Search } from "../view/search.js";
import { isWhole, useFleet } from "./fleet-state.js";
import { ModelGrid } from "./model-grid.js";
import { OwnModels } from "./own-models.js";

export function ModelsPage() {
  const polled = useFleet();
  const fleet = polled.answer.value;
  const search = route.value.query["q"] ?? "";
  return (
    <Page name="Models" polled={polled}>
      <div class="bar">
        <Search name="q" label="Search by name" />
      </div>
      {fleet !== undefined &&
        (isWhole(fleet) ? <ModelGrid fleet={fleet} search={search} /> : <OwnModels fleet={fleet} />)}
    </Page>
  );
}
