/** Finds added tokens in text, the leftmost first and the longest of those, as Hugging Face's tokenizers do. */
import type { AddedToken } from "./tokenizer-json.js";

/**
 * Noncharacters, which Unicode keeps for uses like this: they stand before and after a control token's text where a user wrote it, and go before anything is encoded.
 * In users' own text they are replaced. Two, so that a template's own token between two such texts is not taken for one.
 */
const OPEN = "\ufdd0";
const CLOSE = "\ufdd1";

export function withoutMarks(text: string): string {
  return text.replace(/[\ufdd0\ufdd1]/g, "");
}

export type Section =
  { readonly kind: "text"; readonly text: string } | { readonly kind: "token"; readonly token: AddedToken };

interface Node {
  /** By UTF-16 unit. */
  readonly next: Map<string, Node>;
  token: AddedToken | undefined;
}

export class AddedTokens {
  private readonly root: Node = { next: new Map(), token: undefined };
  readonly size: number;

  constructor(tokens: readonly AddedToken[]) {
    this.size = tokens.length;
    for (const token of tokens) {
      let node = this.root;
      for (let i = 0; i < token.content.length; i++) {
        const unit = token.content.charAt(i);
        const next = node.next.get(unit) ?? { next: new Map<string, Node>(), token: undefined };
        node.next.set(unit, next);
        node = next;
      }
      // An empty text would be found everywhere.
      if (node !== this.root) node.token = token;
    }
  }

  /** @returns every token that begins at `at`, shortest first, and whether the text ends where a longer one might still go on. */
  beginningAt(text: string, at: number): { readonly tokens: readonly AddedToken[]; readonly cutOff: boolean } {
    let node = this.root.next.get(text.charAt(at));
    if (node === undefined) return NONE;
    const tokens: AddedToken[] = [];
    let end = at + 1;
    for (;;) {
      if (node.token !== undefined) tokens.push(node.token);
      if (end === text.length) return { tokens, cutOff: node.next.size > 0 };
      node = node.next.get(text.charAt(end++));
      if (node === undefined) return { tokens, cutOff: false };
    }
  }

  /** Text sections come without marks, and without the white space that a token beside them takes. */
  split(text: string): Section[] {
    const sections: Section[] = [];
    let from = 0;
    for (let at = 0; at < text.length;) {
      const token = this.beginningAt(text, at).tokens.findLast(({ content }) => !isMarked(text, at, content.length));
      if (token === undefined) {
        at++;
        continue;
      }
      if (at > from) sections.push({ kind: "text", text: text.slice(from, at) });
      sections.push({ kind: "token", token });
      at += token.content.length;
      from = at;
    }
    if (from < text.length) sections.push({ kind: "text", text: text.slice(from) });
    return sections.map((section, i) =>
      section.kind === "token"
        ? section
        : { kind: "text", text: trimmed(withoutMarks(section.text), sections[i - 1], sections[i + 1]) },
    );
  }
}

const NONE = { tokens: [], cutOff: false } as const;

function isMarked(text: string, at: number, length: number): boolean {
  return text.charAt(at - 1) === OPEN && text.charAt(at + length) === CLOSE;
}

function trimmed(text: string, before: Section | undefined, after: Section | undefined): string {
  const start = before?.kind === "token" && before.token.rstrip ? text.trimStart() : text;
  return after?.kind === "token" && after.token.lstrip ? start.trimEnd() : start;
}

/**
 * What a user wrote, so that no control token can come of it (spec/reliability.md A33): marks around each whole one, and one inside of what might become one together
 * with what follows. Harmless text comes back as it is, but for lone surrogates.
 */
export function inert(text: string, control: AddedTokens): string {
  const clean = text.replace(/[\p{Cs}\ufdd0\ufdd1]/gu, "\ufffd");
  const marks = new Map<number, string>();
  for (let at = 0; at < clean.length; at++) {
    const { tokens, cutOff } = control.beginningAt(clean, at);
    // What closes at a place does so before anything opens there.
    if (tokens.length > 0) marks.set(at, marks.get(at)?.startsWith(CLOSE) === true ? CLOSE + OPEN : OPEN);
    for (const { content } of tokens) marks.set(at + content.length, CLOSE);
    if (cutOff) marks.set(at + String.fromCodePoint(clean.codePointAt(at) ?? 0).length, CLOSE);
  }
  let marked = "";
  let from = 0;
  for (const [place, mark] of [...marks].sort(([a], [b]) => a - b)) {
    marked += clean.slice(from, place) + mark;
    from = place;
  }
  return marked + clean.slice(from);
}
