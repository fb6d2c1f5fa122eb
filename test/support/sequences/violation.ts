/** A broken promise about sequences that a checker found. */
export interface Violation {
  readonly invariant:
    | "every request ends"
    | "one outcome"
    | "no phantom"
    | "unknowns resolve"
    | "state is the fold"
    | "one version to the end"
    | "never back"
    | "one committer"
    | "nothing left over"
    | "bounded"
    | "nobody else pays";
  readonly what: string;
  readonly request?: string;
  readonly sequence?: string;
}
