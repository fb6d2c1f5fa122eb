/**
 * Puts labels in the place of ids, times, secrets and ports, because they differ from run to run.
 * The same id gets the same label within a case, so that an answer with another request's id shows.
 */

/** The label of each kind, and the pattern of its texts. A numbered kind counts its members. */
const KINDS: readonly { readonly label: string; readonly pattern: RegExp; readonly isNumbered?: boolean }[] = [
  { label: "jwt", pattern: /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g },
  { label: "seed", pattern: /\bSU[A-Z2-7]{56}\b/g },
  { label: "secret", pattern: /\bwhsec_[\w+/=]+/g },
  { label: "time", pattern: /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g },
  { label: "ms", pattern: /\b1[789]\d{11}\b/g },
  { label: "s", pattern: /\b1[789]\d{8}\b/g },
  // A request's id names its bucket and model, and its uuid decides the bucket.
  {
    label: "request",
    pattern: /\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}(?:\.\d+\.[\w-]+)?\b/g,
    isNumbered: true,
  },
  { label: "process", pattern: /(?<=worker-1\.)[\da-f]{12}\b/g },
  { label: "count", pattern: /(?<="ms":|"progress":\{"tokens":)\d+/g },
  { label: "id", pattern: /(?<![\w-])[\w-]{18,}(?:\.[\w-]+)*/g, isNumbered: true },
  // Statistics have times, and what ran together depends on the moment.
  { label: "batches", pattern: /(?<="batch_stats":)\[[^\]]*\]/g },
  { label: "responses", pattern: /(?<="response_stats":)\{.*?\}(?=,"batch_stats")/g },
  { label: "count", pattern: /(?<="ns":|"inference_count":|"execution_count":)\d+|(?<="count":)\d+(?=,"ns")/g },
  { label: "ms", pattern: /(?<="last_inference":)\d+/g },
  { label: "times", pattern: /(?<="at":)\[[^\]]*\]/g },
  { label: "points", pattern: /(?<="series":)\{.*\}(?=\})/g },
  { label: "port", pattern: /(?<=127\.0\.0\.1:)\d{4,5}\b/g },
];

/** Letters of both cases, with digits or many capitals: a name of the API has no such mixture. */
const isDrawn = (text: string) => /[a-z]/.test(text) && /[A-Z]/.test(text) && /\d|(?:[A-Z].*){4}/.test(text);

export class Labels {
  readonly #numbers = new Map<string, string>();

  of(text: string): string {
    let labelled = text;
    for (const { label, pattern, isNumbered = false } of KINDS) {
      labelled = labelled.replace(pattern, (found) => {
        if (label === "id" && !isDrawn(found)) return found;
        return isNumbered ? this.#numbered(label, found) : `<${label}>`;
      });
    }
    return labelled;
  }

  #numbered(label: string, found: string): string {
    const known = this.#numbers.get(found);
    if (known !== undefined) return known;
    const made = `<${label} ${this.#numbers.size + 1}>`;
    this.#numbers.set(found, made);
    return made;
  }
}
