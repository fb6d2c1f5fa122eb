/**
 * The figures of requests that this process waits for, and of requests that this process ends. A
 * worker counts the requests that the worker ends.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import { cells, type Cell } from "#shared/metrics/cells.js";
import type { FamilyName } from "#shared/metrics/families.js";
import type { Labels } from "#shared/metrics/text.js";
import { endReport } from "./end-report.js";

/** The place of a request whose deadline passed: waiting, at a worker, or with tokens. */
export type ExpiredIn = "queue" | "run" | "stream";
/** Why a request was given up. */
type CancelledFor = "client_left" | "deleted";

/** A version by its names. */
interface EndedVersion {
  readonly model: string;
  readonly version: string;
}

export class ModelEnds {
  readonly #model: EndedVersion;
  readonly #labels: Labels;
  #waiting: Cell | undefined;

  constructor(model: EndedVersion, labels: Labels) {
    this.#model = model;
    this.#labels = labels;
  }

  /** @param more 1 for a request that waits from now on, -1 for a request that waits no longer */
  waits(more: 1 | -1): void {
    this.#waiting ??= cells.counter("baton_requests_waiting", this.#labels);
    cells.add(this.#waiting, more);
  }

  /** @param ms from the admission to the end */
  expired(where: ExpiredIn, ms: number): void {
    this.#count("baton_expired_total", { where });
    this.#failed("REJECTED", ms);
  }

  /** @param ms from the admission to the end */
  cancelled(why: CancelledFor, ms: number): void {
    this.#count("baton_cancelled_total", { why });
    this.#failed("CANCELED", ms);
  }

  #failed(reason: string, ms: number): void {
    this.#count("nv_inference_request_failure", { reason });
    endReport.failed(this.#model, ms);
  }

  /** Such ends are rare, so their series are looked up each time. */
  #count(family: FamilyName, labels: Labels): void {
    cells.add(cells.counter(family, { ...this.#labels, ...labels }));
  }
}

/** By the models of announcements: a worker that comes back announces its models anew. */
const ofModels = new WeakMap<ServedModel, ModelEnds>();

export function endsOf(model: ServedModel): ModelEnds {
  let ends = ofModels.get(model);
  if (ends === undefined) {
    const { name, version } = model;
    ofModels.set(model, (ends = new ModelEnds({ model: name, version }, cells.modelLabels(name, version))));
  }
  return ends;
}

/** For a request whose version Redis has told with the end; its workers may be gone for long. */
export function endsAt({ model }: { readonly model: string }, version: string): ModelEnds {
  return new ModelEnds({ model, version }, cells.labelsIfKnown(model, version));
}
