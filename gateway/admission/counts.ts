/** The figures of admissions in this process. */
import type { ServedModel } from "#shared/contract/announcement.js";
import { cells, type Buckets, type Cell } from "#shared/metrics/cells.js";

const answers = ["admitted", "known", "refused"] as const;
/** How the queue answered a request. `known`: an earlier request under its key was admitted. */
export type Answered = (typeof answers)[number];

/** By the models of announcements: a worker that comes back announces its models anew. */
const ofModels = new WeakMap<ServedModel, Readonly<Record<Answered, Cell>>>();

export function countAdmission(model: ServedModel, said: Answered): void {
  let found = ofModels.get(model);
  if (found === undefined) {
    const labels = cells.modelLabels(model.name, model.version);
    const cellOf = (word: Answered) => cells.counter("baton_admissions_total", { ...labels, said: word });
    found = { admitted: cellOf("admitted"), known: cellOf("known"), refused: cellOf("refused") };
    ofModels.set(model, found);
  }
  cells.add(found[said]);
}

/** Made at the first call, because the jobs process of a small deployment makes none. */
let calls: { readonly seconds: Buckets; readonly requests: Buckets } | undefined;

/** @param ms from the first attempt to the answer, or to the end of all attempts */
export function countCall(requests: number, ms: number): void {
  calls ??= {
    seconds: cells.histogram("baton_admission_duration_seconds"),
    requests: cells.histogram("baton_admission_call_requests"),
  };
  cells.observe(calls.seconds, ms / 1_000);
  cells.observe(calls.requests, requests);
}
