/**
 * Faults of the product, put in by hand, a single fault at a time: they prove that the
 * simulation finds the kinds of fault that it exists to find. Each fault replaces a text of a
 * script. A script without the text is an error, so a fault cannot silently vanish.
 */
import type { Call } from "#shared/redis/transaction.js";
import type { Replacement } from "./scripts.js";

export interface Fault {
  readonly replacements: readonly Replacement[];
  /** False: the fault is in a script that few steps take while there are short scripts. */
  readonly shortScripts?: false;
  /** Calls to send before this call, on their own way: they arrive even if the call does not. */
  readonly ahead?: (name: string, call: Call) => readonly Call[];
}

const commit = (text: string, by: string): Replacement => ({ script: "commit-steps.lua", text, by });
const commitUsual = (text: string, by: string): Replacement => ({ script: "commit-usual.lua", text, by });

const REFUSED = "if not mine or not isIts then";
const REMOVED =
  "if action == 'put' and not (at .. ' ' .. kept):find(version, 1, true) then remove(lane, name, {version}) end";
const TAKEN = "for _, row in ipairs(redis.call('XPENDING', ready, group, '-', '+', ARGV[4], other)) do";

export const faults: Readonly<Record<string, Fault>> = {
  "no fence": {
    shortScripts: false,
    replacements: [commit("local mine = lane.owns(entry)", "local mine = true"), commit(REFUSED, "if not seq then")],
  },
  "acknowledge before commit": {
    shortScripts: false,
    replacements: [commit("local mine = lane.owns(entry)", "local mine = true")],
    ahead: acknowledgements,
  },
  "a result counts after its request has expired": {
    shortScripts: false,
    replacements: [commit("  if not isOpen then\n    said = 'superseded'", "  if false then\n    said = 'superseded'")],
  },
  "a commit takes effect twice": {
    shortScripts: false,
    replacements: [commit(REFUSED, "if (not mine or not isIts) and not (seq and seq.done == step) then")],
  },
  "a repeated admission call is not recognised": {
    replacements: [
      {
        script: "admit.lua",
        text: "local last, kept = lastCall()",
        by: "local last, kept = math.min(acknowledged, number - 1), {}",
      },
    ],
  },
  "a wake-up is forgotten": {
    shortScripts: false,
    replacements: [
      commit(
        "local waiting = seq.next > step and redis.call('LPOP', ",
        "local waiting = false and redis.call('LPOP', ",
      ),
    ],
  },
  "a checkpoint moves though its commit was refused": {
    shortScripts: false,
    replacements: [
      commit(REMOVED, "if action == 'put' and seq then\n seq.at = version\n noteSequence(lane.base, name, seq)\n end"),
    ],
  },
  "waiting steps are taken in the wrong order": {
    shortScripts: false,
    replacements: [commit("redis.call('LPOP', 'wait:'", "redis.call('RPOP', 'wait:'")],
  },
  "a dead worker's entries are not taken": {
    replacements: [{ script: "take-from.lua", text: TAKEN, by: "for _, row in ipairs({}) do" }],
  },
  "an outcome lost by NATS is not looked up": {
    replacements: [
      { script: "find-outcomes.lua", text: "\nreturn said", by: "\nfor i = 1, #said do said[i] = -1 end\nreturn said" },
    ],
  },
  "a result counts after its request has expired, by the short script": {
    replacements: [commitUsual("if ended ~= '0' then return false end", "")],
  },
};

/**
 * Calls that acknowledge the steps of a commit. The numbers come from the head of commit-steps.lua:
 * the counts and the lanes' streams; seven arguments, four per lane, and thirteen per step.
 */
function acknowledgements(name: string, call: Call): Call[] {
  if (name !== "commit-steps.lua") return [];
  const [, , count, ...rest] = call.map(String);
  const keys = rest.slice(0, Number(count));
  const args = rest.slice(Number(count));
  const [group = ""] = args;
  const calls: Call[] = [];
  for (let a = 7 + 4 * (keys.length - 1); a < args.length; a += 13) {
    const [ready = "", entry = ""] = [keys[Number(args[a])], args[a + 1]];
    calls.push(["XACK", ready, group, entry], ["XDEL", ready, entry]);
  }
  return calls;
}
