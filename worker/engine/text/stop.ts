/**
 * Cuts a text at the first stop string. One automaton of Knuth, Morris and Pratt runs per stop
 * string, so the work grows with the text alone. The automaton's state says how much of the text's
 * end may still begin a stop string.
 */

/** The automaton of one stop string. */
interface Matcher {
  readonly stop: string;
  /**
   * The failure function, one per place of `stop`: the length of the longest proper prefix of
   * `stop` that ends at this place.
   */
  readonly borders: Int32Array;
  /** The number of units of `stop` at the end of the text so far. */
  matched: number;
}

export interface Cut {
  /** New text that certainly belongs to no stop string. */
  readonly text: string;
  /** Whether a stop string has ended the text. */
  readonly stopped: boolean;
}

export class StopStrings {
  /** Whether a stop string has ended the text. */
  stopped = false;
  private readonly matchers: readonly Matcher[];
  /** The end of the text so far, held back because it may begin a stop string. */
  private held = "";

  constructor(stops: readonly string[]) {
    this.matchers = stops.filter((stop) => stop !== "").map((stop) => ({ stop, borders: bordersOf(stop), matched: 0 }));
  }

  /** Whether there are no stop strings, so that `push` holds no text back. */
  get none(): boolean {
    return this.matchers.length === 0;
  }

  /**
   * Adds text. The push that completes a stop string is the last; if it completes several, the stop
   * string that begins first counts.
   * @param honoured false: a stop string that ends in this text is plain text; a stop string that
   *   only begins in this text may still end the text later
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
    // `start` counts from the beginning of `text`, so it is negative for a stop string that began
    // before.
    const certain = this.stopped ? this.held.length + start : all.length - open;
    this.held = this.stopped ? "" : all.slice(certain);
    return { text: all.slice(0, certain), stopped: this.stopped };
  }

  /** @returns the held text, at the end of the text */
  flush(): string {
    const { held } = this;
    this.held = "";
    return held;
  }
}

/** @returns the place in `text` after the first end of the stop string, or undefined */
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

/** @returns the failure function of a stop string */
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
