/**
 * The texts of tokens, read from a byte-level tokenizer.json without Baton's code, to check the
 * fleet's texts.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface TokenizerFile {
  readonly added_tokens: readonly { readonly id: number }[];
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
}

export class Vocabulary {
  readonly #bytes = new Map<number, Buffer>();

  constructor({ added_tokens, model }: TokenizerFile) {
    for (const [token, id] of Object.entries(model.vocab)) this.#bytes.set(id, bytesOf(token));
    for (const { id } of added_tokens) this.#bytes.delete(id); // specials have no text
  }

  /** @param folder a model in Hugging Face's layout */
  static read(folder: string): Vocabulary {
    return new Vocabulary(JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8")) as TokenizerFile);
  }

  /** The ids of tokens of printable ASCII, whose text never waits for another token. */
  get plain(): number[] {
    return [...this.#bytes.keys()].filter((id) => this.isPlain(id)).sort((a, b) => a - b);
  }

  isPlain(id: number): boolean {
    const bytes = this.#bytes.get(id);
    return bytes !== undefined && bytes.every((byte) => byte >= 0x20 && byte <= 0x7e);
  }

  textOf(ids: readonly number[]): string {
    return Buffer.concat(ids.map((id) => this.#bytes.get(id) ?? Buffer.alloc(0))).toString("utf8");
  }
}

/**
 * GPT-2's stand-ins for bytes: printable characters of Latin-1 stand for themselves, the other
 * bytes follow from 256 on.
 */
const standIns: readonly number[] = (() => {
  const printable = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  let others = 256;
  return Array.from({ length: 256 }, (_, byte) => (printable(byte) ? byte : others++));
})();

const byteOf = new Map(standIns.map((standIn, byte) => [standIn, byte]));

function bytesOf(token: string): Buffer {
  return Buffer.from(Array.from(token, (char) => byteOf.get(char.codePointAt(0) ?? -1) ?? 0x3f));
}
