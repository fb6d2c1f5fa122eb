/** Finds added tokens in text, the leftmost first and the longest of those, as Hugging Face's tokenizers do. */
import type { AddedToken } from "./schema.js";

/**
 * A noncharacter, which Unicode keeps for uses like this: it breaks a control token's text where a user wrote it, and goes before anything is encoded. In users' own
 * text it is replaced. It stands inside, not around, because templates cut contents into pieces, at any place.
 */
const MARK = "\ufdd0";

export function withoutMarks(text: string): string {
  return text.replaceAll(MARK, "");
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
      const token = this.beginningAt(text, at).tokens.at(-1);
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

function trimmed(text: string, before: Section | undefined, after: Section | undefined): string {
  const start = before?.kind === "token" && before.token.rstrip ? text.trimStart() : text;
  return after?.kind === "token" && after.token.lstrip ? start.trimEnd() : start;
}

/**
 * What a user wrote, so that no control token can come of it (spec/reliability.md A33): a mark after the first character of each, and of what may become one together
 * with what follows. Harmless text comes back as it is, but for lone surrogates.
 */
export function inert(text: string, control: AddedTokens): string {
  const clean = text.replace(/[\p{Cs}\ufdd0]/gu, "\ufffd");
  let marked = "";
  let from = 0;
  for (let at = 0; at < clean.length; at++) {
    const { tokens, cutOff } = control.beginningAt(clean, at);
    if (tokens.length === 0 && !cutOff) continue;
    const place = at + String.fromCodePoint(clean.codePointAt(at) ?? 0).length;
    marked += clean.slice(from, place) + MARK;
    from = place;
  }
  return marked + clean.slice(from);
}
