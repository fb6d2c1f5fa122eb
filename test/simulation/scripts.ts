/**
 * Makes the product's scripts run in the time of a simulation. Three things in the scripts change.
 * The pieces that give the time (time.lua, clock.lua) give simulated time. Streams form the ids of
 * entries from that time, not from the server's. The turn of the lane's reconciler, which has the
 * only TTL that ends within a run, uses simulated time, too.
 */
import { readFileSync } from "node:fs";
import { clockPiece } from "#shared/queue/pieces/clock.js";
import { timePiece } from "#shared/queue/pieces/time.js";

/** Holds the simulated µs at which a call runs. */
export const TIME_KEY = "simulation:now";

const [piece, clock] = [timePiece, clockPiece].map((one) => readFileSync(one, "utf8")) as [string, string];

/** `time` in the form of TIME's reply, and `now` in ms, from the simulated µs. */
const simulated = [
  "local time = {string.format('%.0f', math.floor(simulated / 1000000)), string.format('%.0f', simulated % 1000000)}",
  "local now = math.floor(simulated / 1000)\n",
].join("\n");

const round = "if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 'begun' end";
const simulatedRound = [
  `if tonumber(redis.call('GET', KEYS[1]) or '0') <= simulated then`,
  "  redis.call('SET', KEYS[1], string.format('%.0f', simulated + ARGV[2] * 1000), 'PX', 3600000)",
  "  return 'begun'",
  "end",
].join("\n");

/** A text of a script, and the text to put in its place. */
export interface Replacement {
  /** Name of the script's file. */
  readonly script: string;
  readonly text: string;
  readonly by: string;
}

const always: readonly Replacement[] = [{ script: "begin-round.lua", text: round, by: simulatedRound }];

export class Scripts {
  readonly #replacements: readonly Replacement[];
  /** Replacements that no script has had yet. */
  readonly #unused: Set<Replacement>;

  constructor(mutations: readonly Replacement[]) {
    this.#replacements = [...always, ...mutations];
    this.#unused = new Set(mutations);
  }

  /** @throws Error if a script to change does not contain the text exactly once */
  translate(source: string): { readonly name: string; readonly source: string } {
    const name = /^(?:#!lua[^\n]*\n(?: *if string[^\n]* end )?|local forget[^\n]*\n)?[^\n]*?-- ([\w-]+\.lua):/.exec(
      source,
    )?.[1];
    if (name === undefined) throw new Error(`a script without a name: ${source.slice(0, 200)}`);
    let text = source.replace(piece, simulated).replace(clock, "local function clockUs() return simulated end\n");
    if (text.includes("'TIME'")) throw new Error(`${name} asks for the time otherwise than by time.lua or clock.lua`);
    text = text.replaceAll(
      /(redis\.p?call\('XADD',[^\n]*?)'\*'/g,
      "$1string.format('%.0f-*', math.floor(simulated / 1000))",
    );
    if (/'XADD'[^\n]*'\*'/.test(text)) throw new Error(`${name} has an XADD that is not understood`);
    for (const replacement of this.#replacements) {
      if (replacement.script !== name) continue;
      if (text.split(replacement.text).length !== 2) {
        throw new Error(`${name} does not have the text that is to be replaced, once: ${replacement.text}`);
      }
      text = text.replace(replacement.text, () => replacement.by);
      this.#unused.delete(replacement);
    }
    const head = /^#![^\n]*\n/.exec(text)?.[0] ?? "";
    const now = `local simulated = tonumber(redis.call('GET', '${TIME_KEY}')) `;
    return { name, source: `${head}${now}${text.slice(head.length)}` };
  }

  /** @throws Error if a fault belongs to a script that never ran */
  checkUsed(): void {
    for (const { script, text } of this.#unused) throw new Error(`${script} did not run, so it has no fault: ${text}`);
  }
}
