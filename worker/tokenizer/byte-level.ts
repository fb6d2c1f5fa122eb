/** GPT-2's alphabet: byte-level tokenizers write each byte as one printable character, so that a vocabulary is text. */

const printable = [
  [0x21, 0x7e],
  [0xa1, 0xac],
  [0xae, 0xff],
] as const;

const characters: string[] = [];

/** The byte that each of the 256 characters stands for. */
const byteOfCharacter: ReadonlyMap<string, number> = (() => {
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const itself = printable.some(([from, to]) => byte >= from && byte <= to);
    characters.push(String.fromCharCode(itself ? byte : next++));
  }
  return new Map(characters.map((character, byte) => [character, byte]));
})();

/** @returns a token's bytes; undefined when it is no byte-level text. */
export function bytesOfByteLevel(token: string): Uint8Array | undefined {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteOfCharacter.get(token.charAt(i));
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
