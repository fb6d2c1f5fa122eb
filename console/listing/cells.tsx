/** Cells that several lists have. */
import { hrefOf } from "../view/route.js";

/** How good a state is, for its colour. States that are absent here have none. */
const kinds: Readonly<Record<string, "good" | "bad" | "warn" | "accent">> = {
  completed: "good",
  delivered: "good",
  active: "good",
  enabled: "good",
  failed: "bad",
  gone: "bad",
  expired: "warn",
  cancelled: "warn",
  cancelling: "warn",
  paused: "warn",
  running: "accent",
  in_progress: "accent",
  finalizing: "accent",
};

export function State({ of }: { readonly of: string }) {
  return <span class={`tag ${kinds[of] ?? ""}`}>{of}</span>;
}

export interface LinkProps {
  /** The page of the console that shows the thing. */
  readonly page: string;
  readonly id: string | null;
}

/** The id of a thing as a link to its page. */
export function Link({ page, id }: LinkProps) {
  if (id === null) return <span class="none">–</span>;
  return (
    <a href={hrefOf(page, [id])} class="mono" title={id}>
      {id}
    </a>
  );
}

export function Id({ id }: { readonly id: string }) {
  return (
    <span class="mono" title={id}>
      {id}
    </span>
  );
}
