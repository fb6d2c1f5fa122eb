/** Watches a process that loads models beside a worker: it may hang, and nobody waits for it. */

/** Time between two lines of the log, in ms. */
const MINUTE_MS = 60_000;
/** Far more than the largest models take on a slow disk. */
const MOST_MINUTES = 15;

export interface WatchedLoading {
  /** Whether the process still loads, and another process would go on without it. */
  readonly isLoading: () => boolean;
  readonly onLate: (minutes: number) => void;
  /** Called at most once, and as the last. */
  readonly onOver: (minutes: number) => void;
}

export function watchLoading({ isLoading, onLate, onOver }: WatchedLoading): void {
  let minutes = 0;
  const timer = setInterval(() => {
    minutes++;
    const isOver = minutes === MOST_MINUTES;
    if (!isLoading() || isOver) clearInterval(timer);
    if (isLoading()) (isOver ? onOver : onLate)(minutes);
  }, MINUTE_MS);
}
