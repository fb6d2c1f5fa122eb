/** The keys of the console: `?` help, `/` search, `g` and a letter for a page, keys for lists. */
import { signal } from "@preact/signals";
import { currentList } from "./lists.js";
import { goTo, goUp, hrefOf } from "./route.js";

export interface KeyedPage {
  readonly name: string;
  readonly page: string;
  /** The letter behind `g`. */
  readonly key: string;
}

export const isHelpShown = signal(false);

/** Whether the last key was `g`, so that the next names a page. */
let isGoing = false;

/** @param pages which the keys lead to */
export function listenForKeys(pages: readonly KeyedPage[]): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const isDone = event.key === "Escape" ? escape(event.target) : !isTyping(event.target) && act(event.key, pages);
    if (isDone) event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select") !== null;
}

/** Closes the help, leaves a field, or leads to the page above. */
function escape(target: EventTarget | null): boolean {
  if (isHelpShown.value) isHelpShown.value = false;
  else if (isTyping(target) && target instanceof HTMLElement) target.blur();
  else goUp();
  return true;
}

/** @returns whether the key means something */
function act(key: string, pages: readonly KeyedPage[]): boolean {
  const isPage = isGoing;
  isGoing = key === "g" && !isPage;
  if (isPage) {
    const page = pages.find((one) => one.key === key);
    if (page !== undefined) goTo(hrefOf(page.page));
    return page !== undefined;
  }
  switch (key) {
    case "?":
      isHelpShown.value = !isHelpShown.value;
      return true;
    case "/":
      document.querySelector<HTMLElement>("[type=search]")?.focus();
      return true;
    case "j":
    case "k":
      currentList()?.move(key === "j" ? 1 : -1);
      return true;
    case ".":
      if (currentList()?.act() !== true) document.querySelector<HTMLElement>("[data-actions] button")?.focus();
      return true;
    default:
      return isGoing;
  }
}
