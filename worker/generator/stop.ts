/**
 * Cuts a text at the first stop string. Knuth, Morris and Pratt's automaton runs once per stop string, so the work grows with the text alone, and its state says how much of the
 * end may still turn out to begin a stop string.
 */

interface Matcher {
  readonly stop: string;
  /** Beside `stop`: how long the longest beginning of it is that ends at that place, short of all of it. */
  readonly borders: Int32Array;
  /** How much of it stands at the end of the text so far. */
  matched: number;
}

export interface Cut {
  /** What has become certain not to belong to a stop string. */
  readonly text: string;
  readonly stopped: boolean;
}

export class StopStrings {
  stopped = false;
  private readonly matchers: readonly Matcher[];
  /** The end of the text so far, not given out. */
  private held = "";

  constructor(stops: readonly string[]) {
    this.matchers = stops.filter((stop) => stop !== "").map((stop) => ({ stop, borders: bordersOf(stop), matched: 0 }));
  }

  /** Nothing can stop it, nothing is held. */
  get none(): boolean {
    return this.matchers.length === 0;
  }

  /**
   * Ends with the push that completes a stop string; if that completes several, the one that begins first counts.
   * @param honoured false: a stop string that this text completes is text; one that it only begins may still end the text later.
   */
  push(text: string, honoured = true): Cut {
    if (this.stopped) return { text: "", stopped: true };
    if (this.none) return { text, stopped: false };
    let start = Infinity;
    let open = 0;
    for (const matcher of this.matchers) {
      const end = advance(matcher, text, honoured);
      if (end !== undefined) start = Math.min(start, end - matcher.stop.length);
      open = Math.max(open, matcher.matched);
    }
    const all = this.held + text;
    this.stopped = start !== Infinity;
    // `start` counts from the beginning of `text`, and is below zero for one that began before.
    const certain = this.stopped ? this.held.length + start : all.length - open;
    this.held = this.stopped ? "" : all.slice(certain);
    return { text: all.slice(0, certain), stopped: this.stopped };
  }

  /** @returns what was held back, at the end of the text. */
  flush(): string {
    const { held } = this;
    this.held = "";
    return held;
  }
}

/** @returns where in `text` the stop string first ends, or undefined. */
function advance(matcher: Matcher, text: string, honoured: boolean): number | undefined {
  const { stop, borders } = matcher;
  let { matched } = matcher;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    while (matched > 0 && unit !== stop.charCodeAt(matched)) matched = borders[matched - 1] as number;
    if (unit === stop.charCodeAt(matched)) matched++;
    if (matched === stop.length) {
      if (honoured) return i + 1;
      matched = borders[matched - 1] as number;
    }
  }
  matcher.matched = matched;
  return undefined;
}

function bordersOf(stop: string): Int32Array {
  const borders = new Int32Array(stop.length);
  let matched = 0;
  for (let i = 1; i < stop.length; i++) {
    const unit = stop.charCodeAt(i);
    while (matched > 0 && unit !== stop.charCodeAt(matched)) matched = borders[matched - 1] as number;
    if (unit === stop.charCodeAt(matched)) matched++;
    borders[i] = matched;
  }
  return borders;
}
