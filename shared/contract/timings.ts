/**
 * How long a request took and where it ran, in the outcome's head: the member `t` of a result's
 * frame and of an error's JSON. For observation alone, so a gateway reads past what it cannot read.
 */
export interface Timings {
  /** From the admission to the beginning of the run, in ms. */
  readonly queueMs: number;
  /** How long the model ran for the request's batch, in ms. */
  readonly runMs: number;
  /** The boot of the worker (`shared/boot.ts`), which ends the worker's name. */
  readonly boot: string;
}

/** In ms. Longer times are cut, so that the member has at most 40 bytes. */
const MOST_MS = 99_999_999;

/** Writes the member `t`: `[queue,run,"boot"]`, in tenths of a ms. */
export function writeTimings({ queueMs, runMs, boot }: Timings): string {
  return `[${shortly(queueMs)},${shortly(runMs)},"${boot}"]`;
}

/** A clock that was read again may make a time negative. */
function shortly(ms: number): number {
  if (!(ms > 0)) return 0;
  return ms < 100_000 ? Math.round(ms * 10) / 10 : Math.min(MOST_MS, Math.round(ms));
}

/** @returns undefined if there are none, or another version has written them in another form */
export function readTimings(text: string | undefined): Timings | undefined {
  const [, queue, run, boot] = /^\[(\d+(?:\.\d+)?),(\d+(?:\.\d+)?),"([0-9a-f]+)"\]$/.exec(text ?? "") ?? [];
  return boot === undefined ? undefined : { queueMs: Number(queue), runMs: Number(run), boot };
}
