/** The checkpoints of a sequence as a line, on which the user chooses one. */

export interface LineProps {
  /** The steps whose states are kept, in ascending order. */
  readonly steps: readonly number[];
  readonly chosen: number | undefined;
  readonly onChoose: (step: number) => void;
}

export function CheckpointLine({ steps, chosen, onChoose }: LineProps) {
  if (steps.length === 0) return <p class="soft">No checkpoint yet: the first step has not ended.</p>;
  return (
    <ul class="line" aria-label="Checkpoints">
      {steps.map((step, i) => {
        const isNewest = i === steps.length - 1;
        const isAfterGap = i > 0 && step - (steps[i - 1] ?? 0) > 1;
        return (
          <li key={step} class={[isNewest ? "newest" : "", isAfterGap ? "gap" : ""].join(" ")}>
            <button type="button" aria-pressed={step === chosen} onClick={() => onChoose(step)}>
              Step {step}
              <span class="label">{isNewest ? "newest" : "kept"}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
