/** What it means for a reader that the log holds nothing at its index. */
import { InferenceError } from "#shared/errors.js";
import type { StreamRecord } from "../inference.js";
import type { Page } from "./read-logs.js";
import { isFinal, madeFinal } from "./records.js";

export type EmptyPage = Exclude<Page, { said: "records" }>;

/** What this reader knows from before: nothing, that there were records, or that the request had not ended. */
export type Seen = "nothing" | "records" | "running";

export type Standing =
  | { readonly kind: "wait" }
  /** The record at the reader's index, which is the last. */
  | { readonly kind: "final"; readonly record: StreamRecord }
  /** The reader has had the last record. */
  | { readonly kind: "over" }
  | { readonly kind: "refused"; readonly error: InferenceError };

/** @param isStream whether the request is a generator's; undefined where nobody knows its model any more. */
export function standing(page: EmptyPage, at: number, seen: Seen, isStream: boolean | undefined): Standing {
  switch (page.said) {
    case "running":
      return at === page.length ? { kind: "wait" } : beyond(seen);
    case "ended":
      return ended(page, at, seen, isStream);
    case "unknown":
      if (seen === "running") return lost();
      return at > 0 || seen === "records" ? passed() : refused("unknown_request", "no such request");
  }
}

function ended(
  { length, outcome, last }: Extract<EmptyPage, { said: "ended" }>,
  at: number,
  seen: Seen,
  isStream: boolean | undefined,
): Standing {
  if (last !== undefined && isFinal(last)) return at === length ? { kind: "over" } : beyond(seen);
  if (outcome.kind === "result") {
    // A result comes with a complete log, except from a tensor model, which has none.
    if (length > 0) return lost();
    if (isStream === true || (seen === "records" && at > 1)) return passed();
  }
  if (at === length) return { kind: "final", record: madeFinal(at, outcome) };
  return at === length + 1 ? { kind: "over" } : beyond(seen);
}

function beyond(seen: Seen): Standing {
  return seen === "nothing" ? refused("ahead_of_log", "the stream has not reached the index to resume after") : lost();
}

function lost(): Standing {
  return refused("state_lost", "records of the stream are gone");
}

function passed(): Standing {
  return refused("resume_window_passed", "the stream is not kept any more");
}

function refused(code: "ahead_of_log" | "state_lost" | "resume_window_passed" | "unknown_request", message: string) {
  return { kind: "refused", error: new InferenceError(code, message) } as const;
}
