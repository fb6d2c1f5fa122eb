/** Lengths and moments of time as people read them. */

const units = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
] as const;

/** @returns the length of time in its largest whole unit, such as `3 min` */
export function lengthText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const [size, unit] = units.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** @returns such as `3 min ago` or `in 20 s` */
export function relativeText(at: number, from: number): string {
  if (Math.abs(at - from) < 1_000) return "now";
  return at > from ? `in ${lengthText(at - from)}` : `${lengthText(from - at)} ago`;
}

export const timeForms = ["relative", "local", "UTC"] as const;

export type TimeForm = (typeof timeForms)[number];

/** @param from the present, for a relative time */
export function timeText(at: number, form: TimeForm, from: number): string {
  if (form === "relative") return relativeText(at, from);
  if (form === "UTC") return new Date(at).toISOString().replace("T", " ").replace(/\.\d+/, "").replace("Z", " UTC");
  return new Date(at).toLocaleString(undefined, { dateStyle: "short", timeStyle: "long" });
}
