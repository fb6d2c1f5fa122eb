/**
 * The API key that the user has typed in. The session of the tab keeps the key, so the key is gone
 * with the tab, and no address ever holds it.
 */
import { signal } from "@preact/signals";

const PLACE = "baton.key";

const key = signal(sessionStorage.getItem(PLACE) ?? "");

/** Why the gateway wants a key, in its words; undefined while it is content. */
export const wanted = signal<string | undefined>(undefined);

/** Whether the user has given a key. */
export const hasKey = (): boolean => key.value !== "";

/** @param text empty to forget the key */
export function setKey(text: string): void {
  key.value = text.trim();
  wanted.value = undefined;
  if (key.value === "") sessionStorage.removeItem(PLACE);
  else sessionStorage.setItem(PLACE, key.value);
}

/** @returns the headers that authenticate a request */
export function credentials(): Readonly<Record<string, string>> {
  return key.value === "" ? {} : { authorization: `Bearer ${key.value}` };
}
