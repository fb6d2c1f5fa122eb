/**
 * A button for a change that cannot be taken back. It asks once, in its own place, with a second
 * button that names the thing.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

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
  /** Set by a user who keeps the thing: the focus goes back to the button that asked. */
  const isKept = useRef(false);
  const focused = useRef<HTMLButtonElement>(null);
  // Before the browser paints, since the next key may come first.
  useLayoutEffect(() => {
    // The harmless button has the focus, so that a second press of Enter changes nothing.
    if (isAsking || isKept.current) focused.current?.focus();
    isKept.current = false;
  }, [isAsking]);
  if (!isAsking) {
    return (
      <button ref={focused} type="button" disabled={isDisabled || isBusy} onClick={() => setAsking(true)}>
        {verb}
      </button>
    );
  }
  const doKeep = () => {
    isKept.current = true;
    setAsking(false);
  };
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
        doKeep();
      }}
    >
      <button type="button" class="danger" onClick={() => void confirm()}>
        {names}
      </button>{" "}
      <button type="button" ref={focused} onClick={doKeep}>
        Keep
      </button>
    </span>
  );
}
