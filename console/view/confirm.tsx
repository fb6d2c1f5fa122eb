/**
 * A button for a change that cannot be taken back. It asks once, in its own place, with a second
 * button that names the thing.
 */
import { useEffect, useRef, useState } from "preact/hooks";

export interface ConfirmProps {
  /** Such as `End`. */
  readonly verb: string;
  /** Such as `End 42`. */
  readonly names: string;
  readonly isDisabled?: boolean;
  readonly onConfirm: () => Promise<unknown>;
}

export function Confirm({ verb, names, isDisabled = false, onConfirm }: ConfirmProps) {
  const [isAsking, setAsking] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const keep = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The harmless button has the focus, so that a second press of Enter changes nothing.
    if (isAsking) keep.current?.focus();
  }, [isAsking]);
  if (!isAsking) {
    return (
      <button type="button" disabled={isDisabled || isBusy} onClick={() => setAsking(true)}>
        {verb}
      </button>
    );
  }
  const confirm = async () => {
    setAsking(false);
    setBusy(true);
    await onConfirm();
    setBusy(false);
  };
  return (
    <span
      class="confirm"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        setAsking(false);
      }}
    >
      <button type="button" class="danger" onClick={() => void confirm()}>
        {names}
      </button>{" "}
      <button type="button" ref={keep} onClick={() => setAsking(false)}>
        Keep
      </button>
    </span>
  );
}
