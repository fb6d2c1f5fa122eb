/** The fields of a list's filters. */
import { useEffect, useState } from "preact/hooks";
import { filter, route } from "../view/route.js";
import type { Filter } from "./filters.js";

/** A list begins to look this long after the last key, in ms. */
const PAUSE_MS = 300;

export function FilterBar<Row>({ filters }: { readonly filters: readonly Filter<Row>[] }) {
  return (
    <>
      {filters.map(({ name, label, options, isWhole }) =>
        options === undefined ? (
          <TextFilter key={name} name={name} label={label} isWhole={isWhole} />
        ) : (
          <ChoiceFilter key={name} name={name} label={label} options={options} />
        ),
      )}
    </>
  );
}

/** Another filter has other rows, so the list begins with its newest rows again. */
const apply = (name: string, value: string) => filter({ [name]: value, after: undefined });

type TextProps = Pick<Filter<unknown>, "name" | "label"> & { readonly isWhole: Filter<unknown>["isWhole"] | undefined };

function TextFilter({ name, label, isWhole }: TextProps) {
  const given = route.value.query[name] ?? "";
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  useEffect(() => {
    if (text === given) return undefined;
    const timer = setTimeout(() => apply(name, text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class="grow">
      {label}
      <input
        type="search"
        value={text}
        aria-invalid={text !== "" && isWhole?.(text) === false}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={({ key }) => {
          if (key === "Enter") apply(name, text);
        }}
      />
    </label>
  );
}

type ChoiceProps = Pick<Filter<unknown>, "name" | "label"> & { readonly options: readonly string[] };

function ChoiceFilter({ name, label, options }: ChoiceProps) {
  const given = route.value.query[name] ?? "";
  // An address may have a value of its own, such as several states.
  const values = given === "" || options.includes(given) ? options : [given, ...options];
  return (
    <label>
      {label}
      <select value={given} onChange={({ currentTarget }) => apply(name, currentTarget.value)}>
        <option value="">any</option>
        {values.map((value) => (
          <option value={value} key={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}
