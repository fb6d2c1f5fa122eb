/** The differences of two recordings, as lines for a reader. */
import type { Recorded } from "./recorder.js";

/** A body is shown for so many characters around its first difference. */
const SHOWN = 120;

/** @returns a text for each exchange that differs, is gone or is new */
export function differences(before: readonly Recorded[], now: readonly Recorded[]): string[] {
  const names = [...new Set([...before, ...now].map(({ name }) => name))];
  return names.flatMap((name) => {
    const [old, current] = [before, now].map((all) => all.filter((one) => one.name === name));
    const count = Math.max(old?.length ?? 0, current?.length ?? 0);
    return Array.from({ length: count }, (_, i) => differenceOf(name, old?.[i], current?.[i])).filter(
      (text) => text !== undefined,
    );
  });
}

/** @returns a text for each line of the store's layout that is gone or new */
export function layoutDifferences(before: readonly string[], now: readonly string[]): string[] {
  return [
    ...before.filter((line) => !now.includes(line)).map((line) => `the store holds no ${line}`),
    ...now.filter((line) => !before.includes(line)).map((line) => `the store holds a new ${line}`),
  ];
}

function differenceOf(name: string, old: Recorded | undefined, now: Recorded | undefined): string | undefined {
  if (old === undefined) return `${name}: is new`;
  if (now === undefined) return `${name}: is gone`;
  const headers = [...new Set([...Object.keys(old.headers), ...Object.keys(now.headers)])];
  const faults = [
    ...(old.status === now.status ? [] : [`status ${old.status} -> ${now.status}`]),
    ...headers
      .filter((header) => old.headers[header] !== now.headers[header])
      .map((header) => `${header}: ${old.headers[header] ?? "none"} -> ${now.headers[header] ?? "none"}`),
    ...(old.body === now.body ? [] : [bodyDifference(old.body, now.body)]),
  ];
  return faults.length === 0 ? undefined : [name, ...faults].join("\n  ");
}

function bodyDifference(old: string, now: string): string {
  let at = 0;
  while (at < old.length && old[at] === now[at]) at += 1;
  const from = Math.max(0, at - SHOWN / 2);
  return `body at ${at}: ${JSON.stringify(old.slice(from, from + SHOWN))} -> ${JSON.stringify(now.slice(from, from + SHOWN))}`;
}
