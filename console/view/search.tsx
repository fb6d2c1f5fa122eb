/** A field whose text is a filter in the address. */
import { filter, route } from "./route.js";

export interface SearchProps {
  /** The name of the filter in the address. */
  readonly name: string;
  readonly label: string;
}

export function Search({ name, label }: SearchProps) {
  return (
    <label class="grow">
      {label}
      <input
        type="search"
        value={route.value.query[name] ?? ""}
        onInput={({ currentTarget }) => filter({ [name]: currentTarget.value })}
      />
    </label>
  );
}
