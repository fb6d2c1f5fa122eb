/** The facts of a thing: a name and a value in each line. */
import type { ComponentChildren } from "preact";
import { Time } from "../view/times.js";

export interface Fact {
  readonly name: string;
  readonly value: ComponentChildren;
}

export function Facts({ title, facts }: { readonly title: string; readonly facts: readonly Fact[] }) {
  return (
    <section class="sheet section">
      <h2>{title}</h2>
      <table>
        <tbody>
          {facts.map(({ name, value }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A time of a thing: in ISO form, or in seconds since 1970; null if the time has not come. */
export type Moment = string | number | null;

/** Leaves out the times that have not come. */
export function timeFacts(times: Readonly<Record<string, Moment>>): Fact[] {
  return Object.entries(times).flatMap(([name, at]) => (at === null ? [] : [{ name, value: <Time at={isoOf(at)} /> }]));
}

export function isoOf(at: string | number): string {
  return typeof at === "number" ? new Date(at * 1_000).toISOString() : at;
}
