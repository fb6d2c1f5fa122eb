/** The rows that the user has chosen, and a change of all of them at once. */
import { useState } from "preact/hooks";
import { Confirm } from "../view/confirm.js";
import { countText } from "../view/figures.js";
import type { Column } from "../view/grid.js";
import type { Action } from "./actions.js";
import { countOf, summaryOf, type Noun, type Summary } from "./summary.js";

/** The ids of the chosen rows. */
export interface Choice {
  readonly ids: ReadonlySet<string>;
  readonly choose: (ids: ReadonlySet<string>) => void;
}

export function choiceColumn<Row>(idOf: (row: Row) => string, { ids, choose }: Choice): Column<Row> {
  const toggle = (id: string) => {
    const changed = new Set(ids);
    if (!changed.delete(id)) changed.add(id);
    choose(changed);
  };
  return {
    title: "✓",
    width: "16px",
    isField: true,
    cell: (row) => {
      const id = idOf(row);
      return <input type="checkbox" aria-label={`Choose ${id}`} checked={ids.has(id)} onChange={() => toggle(id)} />;
    },
  };
}

export interface ChosenProps<Row> {
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  readonly actions: readonly Action<Row>[];
  readonly noun: Noun;
  readonly choice: Choice;
  readonly onDone: () => void;
}

export function ChosenBar<Row>({ rows, idOf, actions, noun, choice, onDone }: ChosenProps<Row>) {
  const [summary, setSummary] = useState<Summary | undefined>(undefined);
  const { ids, choose } = choice;
  const chosen = rows.filter((row) => ids.has(idOf(row)));
  const runAll = async ({ verb, run }: Action<Row>, targets: readonly Row[]) => {
    setSummary(undefined);
    const failures: Error[] = [];
    // One after the other, so that many changes leave room to other clients.
    for (const row of targets) {
      await run(row).catch((error: unknown) =>
        failures.push(error instanceof Error ? error : new Error(String(error))),
      );
    }
    setSummary(summaryOf(verb, noun, targets.length - failures.length, failures));
    choose(new Set());
    onDone();
  };
  return (
    <>
      {rows.length > 0 && (
        <div class="bar">
          <button type="button" onClick={() => choose(new Set(chosen.length === rows.length ? [] : rows.map(idOf)))}>
            {chosen.length === rows.length ? "Choose none" : "Choose all"}
          </button>
          {actions.map((action) => {
            const targets = chosen.filter(action.isFor);
            return (
              <Confirm
                key={action.verb}
                verb={`${action.verb} chosen`}
                names={`${action.verb} ${countOf(targets.length, noun)}`}
                isDisabled={targets.length === 0}
                onConfirm={() => runAll(action, targets)}
              />
            );
          })}
          <span class="soft" role="status">
            {chosen.length === 0
              ? countOf(rows.length, noun)
              : `${countText(chosen.length)} of ${countOf(rows.length, noun)} chosen`}
          </span>
        </div>
      )}
      {summary !== undefined && (
        <p class={`notice ${summary.isWhole ? "good" : "bad"}`} role="status" aria-label="Summary">
          <span>{summary.text}</span>
          <button type="button" onClick={() => setSummary(undefined)}>
            Close
          </button>
        </p>
      )}
    </>
  );
}
