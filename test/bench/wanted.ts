/** A figure that is wanted of every round. */
export interface Wanted<Round> {
  readonly name: string;
  readonly goal?: string;
  /** Undefined where the round did not measure it. */
  readonly of: (round: Partial<Round>) => number | undefined;
}

export function ratio(above: number | undefined, below: number | undefined): number | undefined {
  return above === undefined || below === undefined ? undefined : above / below;
}
