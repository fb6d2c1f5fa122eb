/**
 * Counts the words that make a reader decode a sentence, per 10,000 words of prose. Run as a
 * program, it prints the rates, and with `--list NAME [path]` each sentence of one rate.
 */
import { resolve } from "node:path";
import { listFiles } from "./files.mjs";
import { readProse } from "./prose.mjs";

/** @import { Passage } from "./prose.mjs" */

const BE = String.raw`\b(?:am|is|are|was|were|be|been|being)(?:n't)?\s+`;
const ADVERBS = String.raw`(?:(?:not|never|only|also|still|then|now|always|just|already|even|once|so|thus|\w+ly)\s+)*`;
const IRREGULAR = [
  "begun bound bought brought built caught chosen cut done drawn driven fed felt forgotten found frozen given held",
  "hidden hurt kept known laid led left lent lost made meant met overwritten paid put read rebuilt reread rewritten",
  "run said seen sent set shown shut spent split spoken stolen sworn taken taught thought thrown told torn undone",
  "understood withdrawn withheld woken won worn written",
]
  .join(" ")
  .replaceAll(" ", "|");

/**
 * Each rate: the words that it counts, and the most of them per 10,000 words. A rate without a
 * bound is a goal: the program only prints it.
 *
 * @type {{ name: string, words: RegExp, most?: number }[]}
 */
const RATES = [
  { name: "what", words: /\bwhat\b/gi, most: 15 },
  { name: "where", words: /\bwhere\b/gi, most: 15 },
  {
    name: "-body, -ever",
    words: /\b(?:nobody|somebody|everybody|anybody|whoever|whatever|whichever|wherever)\b/gi,
    most: 5,
  },
  {
    name: "is told, go on",
    words: new RegExp(String.raw`${BE}${ADVERBS}told\b|\b(?:go|goes|going|went|gone)\s+on\b`, "gi"),
    most: 4,
  },
  { name: "pronouns", words: /\b(?:it|its|one|ones|them|those|others)\b/gi },
  { name: "passive", words: new RegExp(String.raw`${BE}${ADVERBS}(?:\w+ed|${IRREGULAR})\b`, "gi") },
];

const PER = 10_000;

/** Below this many words a group has no rate: a single word would be above every bound. */
const FEWEST_WORDS = 5_000;

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each rate that is above its bound
 */
export function checkEnglish(root, files) {
  return ratesOf(readProse(root, files)).flatMap(({ group, words, rates }) =>
    rates.flatMap(({ name, most, rate }) =>
      most !== undefined && words >= FEWEST_WORDS && rate > most
        ? [`${group}: "${name}" stands ${rate.toFixed(1)} times in 10,000 words, at most ${most} are allowed`]
        : [],
    ),
  );
}

/** @param {Passage[]} prose */
function ratesOf(prose) {
  return [...new Set(prose.map(({ group }) => group))].toSorted().map((group) => {
    const members = prose.filter((passage) => passage.group === group);
    const words = members.reduce((sum, { text }) => sum + (text.match(/[A-Za-z][\w'’-]*/g)?.length ?? 0), 0);
    const rates = RATES.map(({ name, words: pattern, most }) => {
      const count = members.reduce((sum, passage) => sum + places(passage, pattern).length, 0);
      return { name, most, count, rate: (count * PER) / Math.max(words, 1) };
    });
    return { group, words, rates };
  });
}

/**
 * The sentences of a passage that hold a pattern, with an entry for each occurrence. Leaves out
 * questions, because these words are in place there.
 *
 * @param {Passage} passage
 * @param {RegExp} pattern
 * @returns {string[]}
 */
function places({ text }, pattern) {
  const sentences = text.replace(/\s*\n\s*/g, " ").match(/[^.?!]+(?:[.?!](?!\s)[^.?!]*)*[.?!]?/g) ?? [];
  return sentences
    .filter((sentence) => !sentence.endsWith("?"))
    .flatMap((sentence) => Array.from(sentence.match(pattern) ?? [], () => sentence.trim()));
}

function main() {
  const args = process.argv.slice(2);
  const at = args.indexOf("--list");
  const name = at === -1 ? undefined : args[at + 1];
  const beneath = args.filter((_, i) => at === -1 || (i !== at && i !== at + 1));
  const root = resolve(".");
  const files = listFiles(root).filter((path) => beneath.length === 0 || beneath.some((part) => path.startsWith(part)));
  const prose = readProse(root, files);
  const listed = RATES.find((rate) => rate.name === name);
  if (name !== undefined && listed === undefined) {
    throw new Error(`--list takes one of: ${RATES.map((rate) => rate.name).join("; ")}`);
  }
  if (listed !== undefined) {
    for (const passage of prose) {
      for (const sentence of places(passage, listed.words)) console.log(`${passage.path}:${passage.line}: ${sentence}`);
    }
    return;
  }
  console.log(["words", "group".padEnd(9), ...RATES.map((rate) => rate.name)].join("  "));
  for (const { group, words, rates } of ratesOf(prose)) {
    const cells = rates.map((rate) => `${rate.rate.toFixed(1)} (${rate.count})`.padStart(rate.name.length));
    console.log([String(words).padStart(6), group.padEnd(9), ...cells].join("  "));
  }
}

if (process.argv[1] === import.meta.filename) main();
