/** The models that a key may use, for a key that does not show the whole fleet. */
import type { OwnFleet } from "../../gateway/answers.js";
import { Grid, type Column } from "../view/grid.js";
import { hrefOf } from "../view/route.js";

type Model = OwnFleet["models"][number];

const columns: readonly Column<Model>[] = [
  { title: "Model", width: "minmax(150px, 1fr)", cell: ({ name }) => name },
  { title: "Version", width: "80px", cell: ({ version }) => version },
  { title: "Files", width: "minmax(120px, 2fr)", cell: ({ digest }) => <span class="mono">{digest}</span> },
];

export function OwnModels({ fleet: { models } }: { readonly fleet: OwnFleet }) {
  return (
    <Grid
      name="Models"
      columns={columns}
      rows={models}
      idOf={({ name, version }) => `${name}/${version}`}
      hrefOf={({ name }) => hrefOf("models", [name])}
      empty="This key may use no model that is served."
    />
  );
}
