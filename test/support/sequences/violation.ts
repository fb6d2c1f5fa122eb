/** What a checker found against one of the promises that hold for sequences whatever breaks. */
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
