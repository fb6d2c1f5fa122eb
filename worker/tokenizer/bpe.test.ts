import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/support/fleet/random.js";
import { BytePairs } from "./bpe.js";
import { openLibrary } from "./library.js";

const known = ["a", "b", "c", "é", "😀"];
const none: ReadonlySet<number> = new Set();

/** A random model over a few letters. Each merge joins two texts that are tokens already. */
function randomModel(seed: number, over: object) {
  const random = seededRandom(seed);
  const vocab: Record<string, number> = {};
  const tokens = [...known];
  const merges: [string, string][] = [];
  for (let i = 0; i < 40; i++) {
    const [left, right] = [random.pick(tokens), random.pick(tokens)];
    if (tokens.includes(left + right)) continue;
    merges.push([left, right]);
    tokens.push(left + right);
  }
  for (const token of [...tokens, "<unk>", "<0xC3>", "<0xA8>"]) vocab[token] = Object.keys(vocab).length;
  return { type: "BPE", vocab, merges, ...over };
}

describe("BytePairs", () => {
  it.each<[what: string, over: object, letters: readonly string[]]>([
    ["plain", {}, known],
    ["with unknown tokens", { unk_token: "<unk>" }, [...known, "è", "x"]],
    ["with bytes for unknown characters", { unk_token: "<unk>", byte_fallback: true }, [...known, "è", "x"]],
    ["with whole words first", { ignore_merges: true }, known],
  ])("agrees with the library: %s", (_, over, letters) => {
    for (let seed = 1; seed <= 15; seed++) {
      const model = randomModel(seed, over);
      const mine = new BytePairs(model, none);
      const { model: library } = openLibrary({ model });
      const random = seededRandom(seed).fork("words");
      for (let i = 0; i < 30; i++) {
        const word = Array.from({ length: random.between(1, 80) }, () => random.pick(letters)).join("");
        const expected = library._call([word]).map((token) => library.tokens_to_ids.get(token));
        expect(mine.encode(word), `seed ${seed}: ${word}`).toEqual(expected);
        expect(mine.encode(word), "from the cache").toEqual(expected);
      }
    }
  });

  it("takes the leftmost of equal pairs", () => {
    const pairs = new BytePairs({ type: "BPE", vocab: { a: 0, aa: 1 }, merges: ["a a"] }, none);
    expect(pairs.encode("aaa")).toEqual([1, 0]);
  });

  it("leaves out what is unknown to a model without an unknown token, as if it were not there", () => {
    const vocab = { a: 0, b: 1, ab: 2 };
    expect(new BytePairs({ type: "BPE", vocab, merges: ["a b"] }, none).encode("axb")).toEqual([2]);
  });

  it("counts ranks on over merges that lead nowhere", () => {
    const vocab = { a: 0, b: 1, c: 2, bc: 3, ab: 4 };
    const merges = ["x y", "b c", "a b"];
    expect(new BytePairs({ type: "BPE", vocab, merges }, none).encode("abc")).toEqual([0, 3]);
  });

  it("fuses unknown characters where the model says so", () => {
    const model = { type: "BPE", vocab: { a: 0, u: 1 }, merges: [], unk_token: "u" };
    expect(new BytePairs({ ...model, fuse_unk: true }, none).encode("xxaxx")).toEqual([1, 0, 1]);
    expect(new BytePairs({ ...model, fuse_unk: false }, none).encode("xxaxx")).toEqual([1, 1, 0, 1, 1]);
  });

  it("marks what begins and ends a word where the model says so", () => {
    const vocab = { a: 0, "##a": 1, "##b</w>": 2, "##ab</w>": 3, "a</w>": 4 };
    const over = { continuing_subword_prefix: "##", end_of_word_suffix: "</w>", merges: [["##a", "##b</w>"]] };
    const pairs = new BytePairs({ type: "BPE", vocab, ...over }, none);
    expect([pairs.encode("aab"), pairs.encode("a")]).toEqual([[0, 3], [4]]);
  });

  it("makes no control token, neither by merges nor of a whole word", () => {
    const vocab = { "<": 0, s: 1, ">": 2, "<s": 3, "<s>": 4 };
    const merges = ["< s", "<s >"];
    expect(new BytePairs({ type: "BPE", vocab, merges }, none).encode("<s>")).toEqual([4]);
    const guarded = new BytePairs({ type: "BPE", vocab, merges, ignore_merges: true }, new Set([4]));
    expect(guarded.encode("<s>")).toEqual([3, 2]);
  });

  it("looks at each pair of a long word a few times only", () => {
    const vocab: Record<string, number> = { a: 0 };
    const merges: string[] = [];
    for (let token = "a"; token.length < 4096; token += token) {
      merges.push(`${token} ${token}`);
      vocab[token + token] = Object.keys(vocab).length;
    }
    expect(new BytePairs({ type: "BPE", vocab, merges }, none).encode("a".repeat(2 ** 17))).toHaveLength(32);
  });

  it.each<[what: string, model: object]>([
    ["no merges", { vocab: {} }],
    ["a vocabulary of texts", { vocab: { a: "b" }, merges: [] }],
    ["an id out of all proportion", { vocab: { a: 2 ** 40 }, merges: [] }],
    ["a merge of one", { vocab: {}, merges: ["a"] }],
    ["a merge of numbers", { vocab: {}, merges: [[1, 2]] }],
  ])("refuses %s", (_, model) => {
    expect(() => new BytePairs({ type: "BPE", ...model } as never, none)).toThrow(/^tokenizer\.json: /);
  });
});
