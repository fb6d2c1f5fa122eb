/**
 * Finds added tokens in a text, as Hugging Face's tokenizers do: the leftmost first, and at each
 * place the longest. Also escapes the control tokens in users' texts.
 */
import type { AddedToken } from "./schema.js";

/**
 * The mark that escapes a control token in a user's text. It stands inside the token's text, so
 * that no search finds the token, and the encoder removes it. The mark is a Unicode noncharacter,
 * which exists for internal uses like this; in users' own text it becomes U+FFFD. The mark stands
 * inside the token and not around it, because templates cut contents at any place.
 */
const MARK = "\ufdd0";

/** Removes the marks of `escapeControlTokens` from a text. */
export function removeMarks(text: string): string {
  return text.replaceAll(MARK, "");
}

/** A piece of a text: an added token, or the text between two of them. */
export type Section =
  { readonly kind: "text"; readonly text: string } | { readonly kind: "token"; readonly token: AddedToken };

/** A node of a trie of the tokens' texts. */
interface Node {
  /** The nodes that follow, by UTF-16 unit. */
  readonly next: Map<string, Node>;
  /** The token whose text ends here. */
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
      // The search would find a token with an empty text everywhere.
      if (node !== this.root) node.token = token;
    }
  }

  /**
   * @returns every token that begins at `at`, the shortest first, and whether the text ends in the
   * middle of a longer token
   */
  tokensStartingAt(
    text: string,
    at: number,
  ): { readonly tokens: readonly AddedToken[]; readonly mayContinue: boolean } {
    let node = this.root.next.get(text.charAt(at));
    if (node === undefined) return NONE;
    const tokens: AddedToken[] = [];
    let end = at + 1;
    for (;;) {
      if (node.token !== undefined) tokens.push(node.token);
      if (end === text.length) return { tokens, mayContinue: node.next.size > 0 };
      node = node.next.get(text.charAt(end++));
      if (node === undefined) return { tokens, mayContinue: false };
    }
  }

  /**
   * Splits a text into tokens and the texts between them. The texts come without marks, and without
   * the white space that belongs to a neighbouring token (its `lstrip` or `rstrip`).
   */
  split(text: string): Section[] {
    const sections: Section[] = [];
    let from = 0;
    for (let at = 0; at < text.length;) {
      const token = this.tokensStartingAt(text, at).tokens.at(-1);
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
        : { kind: "text", text: trimmed(removeMarks(section.text), sections[i - 1], sections[i + 1]) },
    );
  }
}

const NONE = { tokens: [], mayContinue: false } as const;

function trimmed(text: string, before: Section | undefined, after: Section | undefined): string {
  const start = before?.kind === "token" && before.token.rstrip ? text.trimStart() : text;
  return after?.kind === "token" && after.token.lstrip ? start.trimEnd() : start;
}

/**
 * Escapes a user's text, so that it can never become a control token. Puts a mark after the first
 * character of each control token. An end of the text that may begin a control token gets a mark,
 * too, because a template may add the rest. All other text stays unchanged, except that lone
 * surrogates and marks become U+FFFD.
 * @param control the control tokens
 */
export function escapeControlTokens(text: string, control: AddedTokens): string {
  const clean = text.replace(/[\p{Cs}\ufdd0]/gu, "\ufffd");
  let marked = "";
  let from = 0;
  for (let at = 0; at < clean.length; at++) {
    const { tokens, mayContinue } = control.tokensStartingAt(clean, at);
    if (tokens.length === 0 && !mayContinue) continue;
    const place = at + String.fromCodePoint(clean.codePointAt(at) ?? 0).length;
    marked += clean.slice(from, place) + MARK;
    from = place;
  }
  return marked + clean.slice(from);
}
