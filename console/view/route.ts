/**
 * The address of a page: `#/<page>/<part>/<part>?<filter>=<value>`. Filters are in the address, so
 * that a user can share a view.
 */
import { computed, signal } from "@preact/signals";

export interface Route {
  /** The first segment; "" if the address has none. */
  readonly page: string;
  /** The segments behind the page, decoded. */
  readonly parts: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s, 2);
  const [page = "", ...parts] = path.split("/").map(decoded);
  return { page, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** @param query an empty or undefined value leaves the filter out */
export function hrefOf(
  page: string,
  parts: readonly string[] = [],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(given).toString();
  return `#/${[page, ...parts].map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed(() => parseRoute(hash.value));

export function goTo(href: string): void {
  location.hash = href;
}

/** Changes filters without a new entry in the browser's history. */
export function filter(changed: Readonly<Record<string, string | undefined>>): void {
  const { page, parts, query } = route.value;
  history.replaceState(null, "", hrefOf(page, parts, { ...query, ...changed }));
  hash.value = location.hash;
}

/** Leaves a thing for its list, and a list for nothing. */
export function goUp(): void {
  const { page, parts } = route.value;
  if (parts.length > 0) goTo(hrefOf(page, parts.slice(0, -1)));
}
