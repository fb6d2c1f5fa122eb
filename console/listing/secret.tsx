/** A new secret. Only the answer to its request has it, and the page forgets it when it closes. */
import { useState } from "preact/hooks";
import { attempt } from "../view/failures.js";

export interface SecretProps {
  /** The thing whose messages the secret signs. */
  readonly id: string;
  readonly secret: string;
  readonly onClose: () => void;
}

export function Secret({ id, secret, onClose }: SecretProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => setCopied(await attempt("Copy", () => navigator.clipboard.writeText(secret)));
  return (
    <section class="sheet section" role="status" aria-label="New secret">
      <h2>The new secret of {id}</h2>
      <p class="soft">Store the secret now. Baton does not show it again.</p>
      <div class="bar">
        <code>{secret}</code>
        <button type="button" onClick={() => void copy()}>
          Copy secret
        </button>
        <button type="button" onClick={onClose}>
          Close
        </button>
        <span class="soft">{isCopied ? "copied" : ""}</span>
      </div>
    </section>
  );
}
