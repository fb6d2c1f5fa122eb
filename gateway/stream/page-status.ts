/** Decides what a reader does when the log holds nothing at its index: wait, end, or fail. */
import { fixedError, type InferenceError } from "#shared/errors.js";
import type { StreamRecord } from "./open-stream.js";
import type { Page } from "#shared/queue/admission/read-logs.js";
import { isFinal, finalRecordOf } from "./records.js";

export type EmptyPage = Exclude<Page, { said: "records" }>;

/**
 * The reader's knowledge from before: nothing, that there were records, or that the request was
 * still running.
 */
export type Seen = "nothing" | "records" | "running";

/** The reader's next action. */
export type PageStatus =
  /** The next record is not there yet. */
  | { readonly kind: "wait" }
  /** Here is the record at the reader's index, which is the last. */
  | { readonly kind: "final"; readonly record: StreamRecord }
  /** The reader has had the last record. */
  | { readonly kind: "over" }
  | { readonly kind: "refused"; readonly error: InferenceError };

/**
 * @param at index of the record that the reader wants next
 * @param isStream whether the request is a generator's; undefined if no worker serves its model any
 * more
 */
export function pageStatus(page: EmptyPage, at: number, seen: Seen, isStream: boolean | undefined): PageStatus {
  switch (page.said) {
    case "running":
      return at === page.length ? { kind: "wait" } : beyond(seen);
    case "ended":
      return ended(page, at, seen, isStream);
    case "unknown":
      if (seen === "running") return lost();
      return at > 0 || seen === "records" ? passed() : refused(fixedError("unknown_request", "usual"));
  }
}

/** The end of a stream's log. */
export interface Tail {
  /** The index that the next record will have, or would have. */
  readonly next: number;
  /** Whether the final record is before that index. */
  readonly isOver: boolean;
}

/**
 * @param page the page of a generator's request at an index that no log reaches
 * @throws InferenceError if there is nothing to read of the stream
 */
export function tailOf(page: EmptyPage): Tail {
  const { length } = page;
  const now = pageStatus(page, length, "nothing", true);
  switch (now.kind) {
    case "wait":
      return { next: length, isOver: false };
    case "over":
      return { next: length, isOver: true };
    case "final":
      return { next: length + 1, isOver: true };
    case "refused":
      throw now.error;
  }
}

/** The request has an outcome, and the log has no record at the reader's index. */
function ended(
  { length, outcome, last }: Extract<EmptyPage, { said: "ended" }>,
  at: number,
  seen: Seen,
  isStream: boolean | undefined,
): PageStatus {
  if (last !== undefined && isFinal(last)) return at === length ? { kind: "over" } : beyond(seen);
  if (outcome.kind === "result") {
    // A result comes with a complete log. Only a tensor model has none.
    if (length > 0) return lost();
    if (isStream === true || (seen === "records" && at > 1)) return passed();
  }
  if (at === length) return { kind: "final", record: finalRecordOf(at, outcome) };
  return at === length + 1 ? { kind: "over" } : beyond(seen);
}

/** The reader is past the end: its client asked for too much, or the log has become shorter. */
function beyond(seen: Seen): PageStatus {
  return seen === "nothing" ? refused(fixedError("ahead_of_log", "usual")) : lost();
}

function lost(): PageStatus {
  return refused(fixedError("state_lost", "recordsGone"));
}

function passed(): PageStatus {
  return refused(fixedError("resume_window_passed", "usual"));
}

function refused(error: InferenceError): PageStatus {
  return { kind: "refused", error };
}
