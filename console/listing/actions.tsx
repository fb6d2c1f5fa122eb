/** The changes that a thing takes, as buttons: in its row, on its page, and for several at once. */
import { Confirm } from "../view/confirm.js";
import { attempt } from "../view/failures.js";

export interface Action<Thing> {
  /** Such as `Cancel`. */
  readonly verb: string;
  /** Whether the change takes something away, so that the button asks once. */
  readonly asks: boolean;
  /** Whether the thing takes the change now. */
  readonly isFor: (thing: Thing) => boolean;
  readonly run: (thing: Thing) => Promise<unknown>;
}

export interface ActionButtonsProps<Thing> {
  readonly actions: readonly Action<Thing>[];
  readonly thing: Thing;
  readonly id: string;
  /** Whether the buttons are in a row, among the same buttons of other rows. */
  readonly isInRow?: boolean;
  readonly onDone: (verb: string) => void;
}

export function ActionButtons<Thing>({ actions, thing, id, isInRow = false, onDone }: ActionButtonsProps<Thing>) {
  const run = async ({ verb, run }: Action<Thing>) => {
    if (await attempt(`${verb} ${id}`, () => run(thing))) onDone(verb);
  };
  return (
    <>
      {actions
        .filter(({ isFor }) => isFor(thing))
        .map((action) => {
          const { verb, asks } = action;
          const names = `${verb} ${id}`;
          return asks ? (
            <Confirm key={verb} verb={verb} names={names} onConfirm={() => run(action)} />
          ) : (
            <button type="button" key={verb} aria-label={isInRow ? names : undefined} onClick={() => void run(action)}>
              {verb}
            </button>
          );
        })}
    </>
  );
}
