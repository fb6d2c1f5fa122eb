/** Times: relative, in the zone of the browser, or in UTC, as the user chooses. */
import { signal } from "@preact/signals";
import { timeForms, timeText, type TimeForm } from "./lengths.js";

const PLACE = "baton.times";

export const timeForm = signal<TimeForm>(timeForms.find((one) => one === localStorage.getItem(PLACE)) ?? "relative");

export function nextTimeForm(): void {
  timeForm.value = timeForms[(timeForms.indexOf(timeForm.value) + 1) % timeForms.length] ?? "relative";
  localStorage.setItem(PLACE, timeForm.value);
}

/** The time, in ms since 1970, once a second while the tab is visible. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);

/** @param at in ISO form, or null for no time */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (at === null || at === undefined) return <span class="none">none</span>;
  return (
    <time dateTime={at} title={at}>
      {timeText(Date.parse(at), timeForm.value, timeForm.value === "relative" ? now.value : 0)}
    </time>
  );
}

/**
 * How old the shown answer is.
 * @param error why the last read has failed
 */
export function Age({ at, error }: { readonly at: number | undefined; readonly error: Error | undefined }) {
  if (at === undefined) return <span class="age">{error === undefined ? "loading" : "no data"}</span>;
  const seconds = Math.max(0, Math.round((now.value - at) / 1_000));
  if (error !== undefined) return <span class="age old">old, as of {seconds} s ago</span>;
  return <span class={seconds > 15 ? "age old" : "age"}>{seconds < 2 ? "up to date" : `as of ${seconds} s ago`}</span>;
}
