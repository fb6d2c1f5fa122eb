/** The frame of each page: its name, how old its data is, and the state of reading. */
import type { ComponentChildren } from "preact";
import type { Polled } from "../client/poll.js";
import { Away } from "../client/refusal.js";
import { ErrorNotice } from "./failures.js";
import { Age } from "./times.js";

export interface PageProps {
  readonly name: string;
  /** Where the page's data comes from; absent if the page reads nothing again. */
  readonly polled?: Polled<unknown> | undefined;
  /** The page above this one, as a link before the name. */
  readonly above?: { readonly name: string; readonly href: string };
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ name, polled, above, actions, children }: PageProps) {
  const error = polled?.error.value;
  return (
    <>
      <header class="page-head">
        <div class="names">
          {above !== undefined && (
            <p class="above">
              <a href={above.href}>{above.name}</a>
            </p>
          )}
          <h1>{name}</h1>
        </div>
        <div class="page-actions">
          {actions}
          {polled !== undefined && <Age at={polled.at.value} error={error} />}
          {polled !== undefined && (
            <button type="button" onClick={() => polled.refresh()}>
              Refresh
            </button>
          )}
        </div>
      </header>
      {error !== undefined && !(error instanceof Away) && <ErrorNotice error={error} />}
      {children}
    </>
  );
}
